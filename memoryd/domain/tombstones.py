"""What is not learnt again: digests of what was deleted, salted with the store's secret."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from memoryd.model.change import Tombstone
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest

__all__ = ["lifted_by", "tombstones_for", "tombstones_of"]


def tombstones_of(
    owner: Owner, content: str, message_ids: Sequence[str], secret: bytes, trusts: Iterable[Trust]
) -> list[Tombstone]:
    """
    Return the tombstones of a statement: one of its text, and one of each message that it was learnt from.

    They are of those who delete: what one of some trust has deleted is not learnt again by one of as much or less, and
    is lifted by one of as much or more.
    """
    named = [b"text" + text_digest(content)]
    named += [b"messages" + fromkey.encode() for fromkey in dict.fromkeys(message_ids)]
    scope = repr((owner.agent_id, owner.scope.user_id, owner.scope.chat_id)).encode()
    return [
        Tombstone(owner, hashlib.blake2b(scope + trust.value.encode() + name, key=secret, digest_size=16).digest())
        for name in named
        for trust in trusts
    ]


def tombstones_for(memory: Memory, secret: bytes, trust: Trust) -> list[Tombstone]:
    """
    Return the tombstones of a memory that someone of this trust deletes.

    Of its messages the first, which says so, is barred: the others may say other things as well.
    """
    return tombstones_of(memory.owner, memory.content, memory.source.message_ids[:1], secret, [trust])


def lifted_by(memory: Memory, secret: bytes, trust: Trust) -> list[Tombstone]:
    """Return the tombstones that someone of this trust lifts by bringing a memory back."""
    below = [other for other in Trust if not other.outranks(trust)]
    return tombstones_of(memory.owner, memory.content, memory.source.message_ids[:1], secret, below)
