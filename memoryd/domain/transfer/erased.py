"""What this store was told to erase, asked before an import brings it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.message_draft import MessageDraft
from memoryd.model.scope import Owner
from memoryd.model.times import EPOCH

__all__ = ["Made", "ever_erased", "things_of_message"]

Made = tuple[ErasedThing, datetime]
"""Something, and when it was made: what was erased before that is another thing of its name."""


async def ever_erased(ports: Ports) -> Callable[[Iterable[Made]], bool]:
    """Return what tells whether one of some things was erased for good since it was made."""
    files = ports.store.files
    purged = None if files is None else await files.ever_purged()
    return lambda things: purged is not None and any(purged.has(thing, made) for thing, made in things)


def things_of_message(owner: Owner, thread_id: str, draft: MessageDraft, now: datetime) -> tuple[Made, ...]:
    """Return what would have erased a message: all of its owner or thread, after it was said, or it alone."""
    return (
        (ErasedThing(ErasedKind.OWNER, owner), draft.create_time or now),
        (ErasedThing(ErasedKind.THREAD, owner, thread_id), draft.create_time or now),
        (ErasedThing(ErasedKind.MESSAGE, owner, thread_id, draft.id), EPOCH),
    )
