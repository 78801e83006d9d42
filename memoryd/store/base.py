"""
What a store promises: these docstrings are the contract, and `tests/conformance` is its proof.

RamStore is the reference, DuckDBStore the store that lasts. A store is what its parts are, each of one noun. What
serves callers takes a visibility or an owner in every method. A store decides nothing and reads no language: what to
write comes as a whole, and `now` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from memoryd.model.entity import Entity
from memoryd.model.erasure import Erasures, Purged
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.reports import Compaction, OwnerContents, OwnerSizes
from memoryd.model.scope import Owner
from memoryd.store.commits import Commits
from memoryd.store.conversations import ConversationStore
from memoryd.store.memories import MemoryStore
from memoryd.store.notes import NoteStore
from memoryd.store.work import WorkStore

__all__ = [
    "Downgrade",
    "FileBacked",
    "FileFigures",
    "GrantStore",
    "LogTail",
    "LoggedCommit",
    "OwnerStore",
    "PeopleStore",
    "Shipping",
    "Spool",
    "Store",
    "StoreCheck",
    "StoreInfo",
]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store is and how large."""

    path: str
    store_id: str
    schema_version: int
    commit_seq: int
    store_bytes: int
    memory_count: int
    fingerprints: Mapping[str, int]
    """How many memories have a vector of each fingerprint; of "", how many have none."""
    newest_create_time: datetime | None
    """The latest ever given, also to a memory that was purged since."""
    secret: bytes
    """32 random bytes made with the store, for signing."""
    history_id: str = ""
    """Changes with each restore from a backup; empty: there was none."""
    sandboxes_closed: bool = False
    """Whether sandboxes are to stay closed, as it was restored from a backup."""
    damage: str = ""
    """What cannot be read of it, as far as anybody has seen; then the counts above may be missing. Empty: nothing."""


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What was found when all of a store was read, and what a start of this version would change."""

    commit_seq: int
    schema_version: int
    """0: the first start makes it."""
    latest_schema_version: int
    rewrites_filter_terms: bool
    store_id: str = ""

    @property
    def migrates(self) -> bool:
        """Whether a start would bring it to another schema."""
        return 0 < self.schema_version < self.latest_schema_version


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A store that went back to the copy from before an upgrade, or would."""

    schema_version: int
    from_schema_version: int
    """The schema that the copy was made before."""
    commit_seq: int
    """The last change set of the copy."""
    given_up_seq: int
    """The last change set of the newer files: what came between is given up."""
    copy: str
    kept: str
    """Where the newer files are kept."""


class Spool(NamedTuple):
    """How much of the log is kept for who ships it to a backup, and the clock that its transactions are timed by."""

    most_bytes: int
    clock: Callable[[], datetime]


class LoggedCommit(NamedTuple):
    """A transaction in the log."""

    commit_seq: int
    time_us: int
    """When it was written, in microseconds since 1970 (UTC)."""
    end: int
    """The bytes of the log up to its end."""


@dataclass(frozen=True, slots=True)
class LogTail:
    """A piece of the log of one generation: of the time between two changes of the file."""

    generation: int
    start: int
    data: bytes = field(repr=False)
    commits: tuple[LoggedCommit, ...] = ()
    """Those that end in it, as far as they were written by this process."""

    @property
    def end(self) -> int:
        """The bytes of the log up to its end."""
        return self.start + len(self.data)


class Shipping(Protocol):
    """How a store in files is copied while it is served."""

    async def take(self, generation: int) -> tuple[list[LogTail], int, int]:
        """
        Return the pieces of the log since the last time, the generation of now, and the last change set.

        Where that is another one than is named, its log comes whole, and the file is held: it does not change until
        `release`.
        """
        ...

    async def release(self) -> bool:
        """Let the file change again; return whether it was held all the time."""
        ...

    def waiting(self) -> list[LogTail]:
        """Return what is left once the store is closed."""
        ...

    @property
    def opened_seq(self) -> int:
        """The number of the last change set when the store was opened."""
        ...

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def lost(self) -> int:
        """How often pieces of the log were lost, as no one took them in time."""
        ...


class PeopleStore(Protocol):
    """The people and things of an owner."""

    async def entities(self, owner: Owner) -> list[Entity]:
        """Return what was decided of the owner's entities by hand, by id."""
        ...

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        """Whether a memory of the owner, but some, names one of these entities or shows another to be one."""
        ...


class GrantStore(Protocol):
    """Grants, the keys of tokens, and what came through each grant, of all owners."""

    async def head(self) -> int:
        """Return how far the changes of grants and of keys have come, whoever made them: each adds one."""
        ...

    async def all(self) -> list[Grant]:
        """Return every grant, also the ended ones, oldest first."""
        ...

    async def token_keys(self) -> list[TokenKey]:
        """Return the keys of tokens that count, oldest first."""
        ...

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        """
        Return how many memories of a grant are stored, in any state, their bytes, and its writes of one day (UTC).

        Writes are the memories of the day that are stored, and its messages, also those that were erased since; those
        that were erased before the store was opened may be left out. It is counted in the transactions that store them,
        whoever commits them.
        """
        ...


class OwnerStore(Protocol):
    """Who has anything stored, and how much. No caller reaches it."""

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        """Return what an owner has, in whatever state; of ids at most `limit` of each sort."""
        ...

    async def of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        """Return the personal scopes of a user in which anything is stored, of one agent or of all."""
        ...

    async def sizes(self, agent_id: str = "", *, limit: int, new_since: datetime | None = None) -> OwnerSizes:
        """
        Return how much is stored of each user and chat, of one agent or of all, those with most text first.

        What was made since `new_since` is counted as new; None: nothing is.
        """
        ...

    async def active_since(self, time: datetime, *, least: int) -> list[Owner]:
        """Return the owners with at least so many memories that were stored since a time and are not deleted."""
        ...


@dataclass(frozen=True, slots=True)
class FileFigures:
    """How the files of a store are, and what waits for them."""

    store_bytes: int
    """Without the log."""
    log_bytes: int
    free_bytes: int | None
    """On the disk; None: it does not answer."""
    waiting_writes: int
    waiting_reads: int


class FileBacked(Protocol):
    """What only a store in files has."""

    @property
    def damage(self) -> str:
        """What is damaged of the files, as far as anybody has seen; empty: nothing."""
        ...

    @property
    def ended_by_damage(self) -> bool:
        """Whether the store was given up because of damage."""
        ...

    def paths(self) -> list[Path]:
        """Return the files that hold it."""
        ...

    def copies(self) -> list[str]:
        """Return the files next to it that hold an earlier state of it."""
        ...

    @property
    def backups(self) -> Callable[[], Sequence[str]]:
        """Who tells, in words, which backups hold an earlier state of it; the daemon sets it. None are known before."""
        ...

    @backups.setter
    def backups(self, tell: Callable[[], Sequence[str]]) -> None: ...

    def figures(self) -> FileFigures:
        """Return how they are now."""
        ...

    async def traces(self, text: str) -> list[str]:
        """
        Return the tables and columns (`memories.content`) in which a text stands.

        Of a copy from before an upgrade, its file name stands in front with a colon, or it is `unreadable`.
        """
        ...

    async def compact(self) -> Compaction:
        """
        Rewrite the files without the bytes of what was purged; calls go on meanwhile.

        Raises Unavailable if there is no room for a copy, or one is being made.
        """
        ...

    async def open_sandboxes(self) -> None:
        """Let sandboxes be opened again after a restore."""
        ...

    def missed_purges(self) -> Erasures | None:
        """
        Return what was erased, by the ledger, after the state that the files are in; None: nothing was missed.

        Until `purges_caught_up` what is erased is not written down again.
        """
        ...

    async def ever_purged(self) -> Purged | None:
        """Return all that the ledger knows was erased; None where there is none. StoreRefused where it is damaged."""
        ...

    async def purges_caught_up(self) -> None:
        """Note that all that was missed is erased."""
        ...

    @property
    def shipping(self) -> Shipping:
        """How it is copied while it is served."""
        ...


class Store(Protocol):
    """All of it."""

    @property
    def commits(self) -> Commits:
        """Who takes change sets."""
        ...

    @property
    def memories(self) -> MemoryStore: ...
    @property
    def conversations(self) -> ConversationStore: ...
    @property
    def people(self) -> PeopleStore: ...
    @property
    def notes(self) -> NoteStore: ...
    @property
    def grants(self) -> GrantStore: ...
    @property
    def work(self) -> WorkStore: ...
    @property
    def owners(self) -> OwnerStore: ...
    @property
    def is_shared(self) -> bool:
        """Whether other daemons may be before it too."""
        ...

    @property
    def files(self) -> FileBacked | None:
        """Its files; None of one that lives in memory."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What an operator should look at: the space of the disk, the ledger of purges, how the server is set up."""
        ...

    async def info(self) -> StoreInfo:
        """Return what the store is and how large."""
        ...

    async def ping(self) -> None:
        """Return when both writer and reader have answered; raises Unavailable if one cannot."""
        ...

    async def close(self) -> None:
        """Finish what is queued and let go of the files."""
        ...
