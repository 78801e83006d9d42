"""What a store promises of conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.limits import how_many_fit
from memoryd.model.scope import Owner, Visibility

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "NUMBERS_A_COMMIT",
    "ConversationStore",
    "MessageHead",
    "MessageSelector",
    "Place",
    "ThreadSelector",
    "numbered",
    "thread_name",
]

Place = tuple[datetime, str]
"""After which a page begins: the time and the id of the last one of the page before."""

NUMBERS_A_COMMIT = 128
"""A message's number is that of its commit times so many, and its place in the commit: it rises over the store."""


def numbered(commit_seq: int, place: int) -> int:
    """Return the number of the message at a place, from 0 on, of a commit."""
    return commit_seq * NUMBERS_A_COMMIT + place


def thread_name(owner: Owner, thread_id: str) -> str:
    """Return the key of a thread: a digest, as a short key keeps an index small and says nothing of users."""
    scope = owner.scope
    named = json.dumps([owner.agent_id, scope.user_id, scope.chat_id, thread_id])
    return hashlib.blake2b(named.encode(), digest_size=16).hexdigest()


class MessageHead(NamedTuple):
    """What is known of a message without reading its texts."""

    owner: Owner
    thread_id: str
    seq: int
    id: str
    text_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSelector:
    """
    Which messages are read, in the order of thread and seq.

    Of one thread, or those at some places (thread and seq) of an owner; or those of some ids, of all owners.
    """

    owner: Owner | None = None
    thread_id: str = ""
    ids: Collection[str] | None = None
    places: Collection[tuple[str, int]] | None = None
    after: int = 0
    before: int = 0
    """Of a thread: with `after` < seq < `before` (0: no end)."""
    session_id: str = ""
    limit: int = 0
    """At most so many; 0: all."""
    is_from_end: bool = False
    """Whether a limit leaves the last ones, or the first."""
    most_bytes: int = 0
    """From the end: at least two if there are, else no more than up to the first with which they have more bytes."""

    def __post_init__(self) -> None:
        """Refuse what no store answers."""
        is_narrowed = self.limit or self.after or self.before or self.session_id or self.ids is not None
        if self.places is not None and (self.owner is None or is_narrowed):
            raise ValueError("places are of one owner, and all of them are read")
        if self.places is None and (self.owner is None) is not (self.thread_id == ""):
            raise ValueError("a thread is of one owner; without it, ids of all owners are asked for")
        if self.owner is None and self.ids is None:
            raise ValueError("neither an owner nor ids are given")

    def fitting(self, sizes: Sequence[int]) -> int:
        """Return how many of the last messages of these sizes are read."""
        return max(2, 1 + how_many_fit(reversed(sizes), self.most_bytes)) if self.most_bytes else len(sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSelector:
    """Which threads are looked for, of all owners."""

    idle_since: datetime | None = None
    ahead_of: datetime | None = None
    """Both: with an open session, and changed before the one time or after the other; least lately changed first."""
    is_unsummarised: bool = False
    """Those whose messages left the prompts past `summed_up_seq`; in the order of their keys."""


class ConversationStore(Protocol):
    """Threads, sessions and messages. What serves callers takes an owner or a visibility in every method."""

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        """Return a thread; None if there is none."""
        ...

    async def threads(
        self, visible: Visibility, *, limit: int, after: Place | None = None, prefix: str = ""
    ) -> list[Thread]:
        """Return at most limit threads whose id begins so, past a place, latest update first, id descending."""
        ...

    async def scan_threads(self, selector: ThreadSelector, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        """Return at most limit threads with their keys, past a key where they are in the order of keys."""
        ...

    async def session(self, owner: Owner, thread_id: str, session_id: str) -> Session | None:
        """Return a session as it was last written; None if there is none."""
        ...

    async def sessions(
        self,
        owners: Collection[Owner],
        *,
        limit: int,
        after: Place | None = None,
        thread_id: str = "",
        states: Collection[SessionState] = (),
    ) -> list[Session]:
        """Return at most limit sessions past a place, latest start first, of one thread or of these states."""
        ...

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        """Return at most limit sessions that wait to be learnt from, of all owners, by a key past the given one."""
        ...

    async def messages(self, selector: MessageSelector) -> list[Message]:
        """Return messages; see MessageSelector."""
        ...

    async def heads(self, selector: MessageSelector) -> list[MessageHead]:
        """Return what is known of messages without their texts, in the same order."""
        ...

    async def numbered(
        self,
        after: int,
        *,
        limit: int,
        until: int | None = None,
        above_bytes: int = 0,
        owner: Owner | None = None,
        words: Sequence[str] = (),
    ) -> list[tuple[int, Message]]:
        """
        Return at most limit messages by number past the given one, of all owners; fewer where they are long.

        Of those up to `until` that take more than so many bytes. Of an owner: those that may hold one of some words, in
        lower case.
        """
        ...

    async def first_said(self, after: int, *, limit: int) -> list[FirstSaid]:
        """Return of the next messages past a number, at most limit, the first of each thread, in their order."""
        ...

    async def totals(self, after: int = 0) -> tuple[int, int]:
        """Return how many messages there are, and how many of them have a number past the given one."""
        ...

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        """Return the working memory of an owner; an empty one if none is set."""
        ...

    async def nearest(
        self,
        owners: Iterable[Owner],
        vector: NDArray[np.float32],
        fingerprint: str,
        *,
        limit: int,
        thread_id: str = "",
        exclude_thread_ids: Collection[str] = (),
    ) -> list[tuple[Message, float]]:
        """Return the most similar messages, of a thread or of all but some, and their cosines, best first."""
        ...
