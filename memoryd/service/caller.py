"""
Who asks: resolved once, for every RPC.

On the admin socket the host says whom it acts for. Other doors will bind the caller, and what a request asserts must
then agree with it.
"""

from __future__ import annotations

from typing import Any

from memoryd.errors import InvalidArgument
from memoryd.model import Caller, Trust

__all__ = ["caller_of", "check_item_identity"]


def caller_of(request: Any) -> Caller:
    """Return the caller that a request on the admin socket names; IdentityMissing if it names none."""
    return Caller(request.agent_id, request.user_id, request.chat_id, Trust.HOST)


def check_item_identity(item: Any, batch: Any, position: int) -> None:
    """Refuse an item of a batch that names another identity than the batch."""
    for name in ("agent_id", "user_id", "chat_id"):
        value = getattr(item, name)
        if value and value != getattr(batch, name):
            raise InvalidArgument(
                f"requests[{position}].{name} differs from the batch's; leave it out, or send batches apart",
                field=f"requests[{position}].{name}",
            )
