"""
What a store promises of conversations; it goes with `store.base`.

Messages have an order of commits of their own: an index of messages follows it, and no decision about memories is made
again because somebody spoke meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.scope import Owner, Visibility

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NUMBERS_A_COMMIT", "ConversationStore", "EpisodeCommits", "Place", "numbered", "thread_name"]

T = TypeVar("T")
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


class ConversationStore(Protocol):
    """Threads, sessions and messages. What serves callers takes an owner or a visibility in every method."""

    def on_episodes(self, callback: Callable[[Applied], None]) -> None:
        """Call back with each change of what a search of messages finds, as `ConversationChange.episodes`."""
        ...

    async def episode_head(self, owner: Owner) -> Head:
        """Return how far the commits of an owner's messages have come."""
        ...

    async def episode_changes(self, owner: Owner, since: int) -> list[Applied] | None:
        """Return those commits after a number, oldest first; None where not all are known."""
        ...

    def read_episodes(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        """Call build, in this thread, with a snapshot of the owner's messages as memories, and return its result."""
        ...

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        """Return a thread; None if there is none."""
        ...

    async def threads(
        self, visible: Visibility, *, limit: int, after: Place | None = None, prefix: str = ""
    ) -> list[Thread]:
        """Return at most limit threads whose id begins so, past a place, latest update first, id descending."""
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

    async def messages(
        self,
        owner: Owner,
        thread_id: str,
        *,
        limit: int,
        before: int = 0,
        after: int = 0,
        session_id: str = "",
        most_bytes: int = 0,
    ) -> list[Message]:
        """
        Return the last `limit` messages with `after` < seq < `before` (0: no end), in order.

        With `most_bytes`, at least two of them if there are, else no more than up to the first with which they have
        more bytes of texts than that.
        """
        ...

    async def messages_at(self, owner: Owner, places: Collection[tuple[str, int]]) -> list[Message]:
        """Return the messages at these places (thread and seq), in the order of thread and seq."""
        ...

    async def messages_of_ids(self, owner: Owner, thread_id: str, ids: Collection[str]) -> list[Message]:
        """Return the messages of a thread that have these ids, in order."""
        ...

    async def message_sizes(self, owner: Owner, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the bytes of the texts of the messages at these places; those that are not there are left out."""
        ...

    async def thread_of_message(self, message_id: str) -> Thread | None:
        """Return a thread, of any owner, that has a message of this id; None if none has."""
        ...

    async def taken_ids(self, owner: Owner, thread_id: str, ids: Collection[str]) -> frozenset[str]:
        """Return those of the ids that messages of a thread have."""
        ...

    async def first_message_ids(self, owner: Owner, thread_id: str, *, limit: int) -> list[str]:
        """Return the ids of a thread's first messages."""
        ...

    async def messages_naming(
        self, owner: Owner, words: Sequence[str], *, limit: int, after: int = 0
    ) -> list[tuple[int, Message]]:
        """Return messages that may hold one of these words, in lower case, by number past the given one."""
        ...

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        """Return the working memory of an owner; an empty one if none is set."""
        ...

    async def nearest_messages(
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

    async def idle_threads(self, before: datetime, ahead: datetime, *, limit: int) -> list[Thread]:
        """Return at most limit threads, of all owners, with an open session, changed before one time or after one."""
        ...

    async def unsummarised_threads(self, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        """
        Return at most limit threads, of all owners, of which messages left the prompts past `summed_up_seq`.

        In the order of a key, past the given one.
        """
        ...

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        """Return at most limit sessions that wait to be learnt from, of all owners, by a key past the given one."""
        ...

    async def messages_past(
        self, after: int, *, limit: int, until: int | None = None, above_bytes: int = 0
    ) -> list[tuple[int, Message]]:
        """
        Return at most limit messages, of all owners, by number past the given one; fewer where they are long.

        Of those up to `until` that take more than so many bytes.
        """
        ...

    async def first_said_past(self, after: int, *, limit: int) -> list[FirstSaid]:
        """Return of the next messages past a number, at most limit, the first of each thread, in their order."""
        ...

    async def messages_on(self, day: date) -> dict[str, int]:
        """Return how many messages of a day (UTC) there are of each grant."""
        ...

    async def message_totals(self, after: int = 0) -> tuple[int, int]:
        """Return how many messages there are, and how many of them have a number past the given one."""
        ...


class EpisodeCommits:
    """The messages of a store, for indexes of them: what `read_owner`, `head` and `changes` are for memories."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    def read_owner(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        """Call build with a snapshot of an owner's messages as memories."""
        return self._store.read_episodes(owner, build)

    async def head(self, owner: Owner) -> Head:
        """Return how far the commits of an owner's messages have come."""
        return await self._store.episode_head(owner)

    async def changes(self, owner: Owner, since: int) -> list[Applied] | None:
        """Return those commits after a number; None where not all are known."""
        return await self._store.episode_changes(owner, since)
