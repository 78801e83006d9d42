"""What is not learnt again: digests of what was deleted, salted with the store's secret."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memoryd.change import Tombstone
from memoryd.checks import text_digest
from memoryd.model import Memory, Owner

__all__ = ["tombstones_for", "tombstones_of"]


def tombstones_of(owner: Owner, content: str, message_ids: Sequence[str], secret: bytes) -> list[Tombstone]:
    """Return the tombstones of a statement: one of its text, one of the messages that it was learnt from, if any."""
    named = [b"text" + text_digest(content)]
    if message_ids:
        named.append(b"messages" + "\0".join(sorted(message_ids)).encode())
    scope = repr((owner.agent_id, owner.scope.user_id, owner.scope.chat_id)).encode()
    return [Tombstone(owner, hashlib.blake2b(scope + name, key=secret, digest_size=16).digest()) for name in named]


def tombstones_for(memory: Memory, secret: bytes) -> list[Tombstone]:
    """Return the tombstones of a memory."""
    return tombstones_of(memory.owner, memory.content, memory.source.message_ids, secret)
