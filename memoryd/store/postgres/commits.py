"""How the store takes change sets, and tells of them: the promises of `store.commits`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import psycopg

from memoryd.errors import MemorydError, OutcomeUnknown, Unavailable
from memoryd.model.call_context import Journal, current_call
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner
from memoryd.store import rows
from memoryd.store.commits import check_owners
from memoryd.store.notes import searched_notes
from memoryd.store.postgres import episodes, following, note_entries, snapshot
from memoryd.store.postgres.changes import planned
from memoryd.store.postgres.connect import NOTHING, Connections, Row, explained
from memoryd.store.postgres.heads import Moved
from memoryd.store.postgres.joined import Joined
from memoryd.store.postgres.skew import Skew
from memoryd.store.postgres.statements import MEMORIES, MESSAGES, NOTES, Statements, owner_key
from memoryd.store.receipt_rows import recorded_of

__all__ = ["PostgresCommits", "PostgresFeed"]

T = TypeVar("T")
UNCONFIRMED = "whether it will be there after a failover is not known"
WAITS_FOR_STANDBY = "SyncRepWaitForLSN"  # the server's function: its messages may be in any language
PAUSES_S = (0.05, 0.2, 0.5, 1, 2, 4, 8)  # between the attempts to find out whether a commit was written
Read = Callable[[psycopg.Connection[Row], Owner, Callable[[Snapshot], T]], T]
NAMES = (
    "SELECT place, rank, agent_id, user_id, chat_id, thread_id, id FROM request_ids"
    " WHERE request_owner = %s AND request = %s ORDER BY place, rank"
)


@contextlib.asynccontextmanager
async def _confirmed(con: psycopg.AsyncConnection[Row]) -> AsyncIterator[None]:
    """
    Raise OutcomeUnknown where the server gave up waiting for its synchronous standby, though it says that it is done.

    It says so by a warning: the commit is there, and would be lost with this server.
    """
    warned: list[str] = []

    def note(told: psycopg.errors.Diagnostic) -> None:
        if told.source_function == WAITS_FOR_STANDBY:
            warned.append(told.message_primary or "")

    con.add_notice_handler(note)
    try:
        yield
    finally:
        con.remove_notice_handler(note)
    if warned:
        raise OutcomeUnknown(f"no synchronous standby has confirmed the commit; {UNCONFIRMED}")


class PostgresFeed:
    """The commits of memories, of messages or of notes."""

    def __init__(self, connections: Connections, heads: Joined, name: str) -> None:
        self._connections, self._heads, self._name = connections, heads, name
        self._callbacks: list[Callable[[Applied], None]] = []

    def follow(self, callback: Callable[[Applied], None]) -> None:
        self._callbacks.append(callback)

    async def head(self, owner: Owner) -> Head:
        return await self._heads.of((owner, self._name))

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        try:
            async with self._connections.use() as con:
                return await following.FOLLOWED[self._name](con, owner, since)
        except psycopg.Error as error:
            raise explained(error, sent=False) from None

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        read = {MEMORIES: snapshot.read_memories, MESSAGES: episodes.read_messages, NOTES: note_entries.read_notes}
        try:
            return read[self._name](self._connections.here, owner, build)
        except psycopg.Error as error:
            raise explained(error, sent=False) from None

    def tell(self, applied: Applied, loop: asyncio.AbstractEventLoop) -> None:
        """Tell who follows; what is committed is acknowledged, whatever goes wrong with them."""
        for callback in self._callbacks:
            try:
                callback(applied)
            except Exception as error:  # noqa: BLE001  see above
                loop.call_exception_handler({"message": "a follower of commits failed", "exception": error})


class PostgresCommits:
    """Takes change sets."""

    def __init__(self, connections: Connections, journal: Journal | None, skew: Skew) -> None:
        self._connections, self._journal, self._skew = connections, journal, skew
        self._longest_s = 2 * connections.settings.statement_timeout_s  # a wait for a standby has no end of its own
        heads = Joined(self._read_heads)
        self.memories = PostgresFeed(connections, heads, MEMORIES)
        self.messages = PostgresFeed(connections, heads, MESSAGES)
        self.notes = PostgresFeed(connections, heads, NOTES)

    async def _read_heads(self, wanted: Sequence[tuple[Owner, str]]) -> dict[tuple[Owner, str], Head]:
        keys = {(owner_key(owner), feed): (owner, feed) for owner, feed in wanted}
        found = await self._connections.rows(
            "SELECT owner_id, feed, commit_seq, newest_create_time, purge_seq FROM heads WHERE owner_id = ANY(%s)",
            [list({key for key, _ in keys})],
        )
        heads = dict.fromkeys(wanted, Head(is_exact=True))
        for key, feed, seq, newest, purge_seq in found:
            if (key, feed) in keys:
                heads[keys[key, feed]] = Head(
                    seq, None if newest is None else rows.aware(newest), purge_seq, is_exact=True
                )
        return heads

    async def write(self, *changes: ChangeSet) -> None:
        check_owners(changes)
        statements, moved = planned(changes, self._skew)
        writing = asyncio.ensure_future(self._commit(changes, statements, moved))
        await asyncio.shield(writing)  # whoever gave up waiting has a commit that is whole or not there

    async def _commit(self, changes: Sequence[ChangeSet], statements: Statements, moved: Sequence[Moved]) -> None:
        sent = False
        try:
            async with self._connections.use() as con, _confirmed(con), asyncio.timeout(self._longest_s):
                sent = True
                numbers = await self._transact(con, changes, statements, moved)
        except TimeoutError:
            raise OutcomeUnknown(f"the database server has not answered; {UNCONFIRMED}") from None
        except OutcomeUnknown:
            raise  # it is there, and no one else has confirmed it: to ask the server would say too much
        except (psycopg.Error, MemorydError) as error:
            told = explained(error, sent=sent)
            if not isinstance(told, OutcomeUnknown):
                raise told from None
            was_written = await self._was_written(changes)
            if was_written is None:
                raise told from None
            if not was_written:
                raise Unavailable(f"the connection was lost; {NOTHING}") from None
            return  # who follows fetches it by `changes`
        self._tell(changes, {(one.change, one.feed): number for one, number in zip(moved, numbers, strict=True)})

    async def _transact(
        self,
        con: psycopg.AsyncConnection[Row],
        changes: Sequence[ChangeSet],
        statements: Statements,
        moved: Sequence[Moved],
    ) -> list[int]:
        """Send all in one flush, and return the numbers that the heads have got."""
        wanted = {one.place: con.cursor() for one in moved}
        async with con.pipeline() as pipeline:
            await con.execute("BEGIN")
            for place, (sql, params) in enumerate(statements):
                cursor = wanted.get(place)
                await (con if cursor is None else cursor).execute(sql.encode(), params)
            if self._journal is not None:
                await pipeline.sync()  # what cannot be written is in no journal
                flushed = await asyncio.to_thread(self._journal.record, [(changes, current_call())])
                await con.execute("COMMIT")
                await pipeline.sync()
                await asyncio.to_thread(flushed)
            else:
                await con.execute("COMMIT")
        return [await self._number(wanted[one.place]) for one in moved]

    @staticmethod
    async def _number(cursor: psycopg.AsyncCursor[Row]) -> int:
        row = await cursor.fetchone()
        assert row is not None  # noqa: S101  each returns one row, or the transaction fails
        return int(row[0])

    def _tell(self, changes: Sequence[ChangeSet], numbers: dict[tuple[int, str], int]) -> None:
        loop = asyncio.get_running_loop()
        for n, change in enumerate(changes):
            number = numbers.get((n, MEMORIES), 0)
            self.memories.tell(Applied(number, change, max(0, number - 1)), loop)
        for n, change in enumerate(changes):
            talk, notes = change.conversation, searched_notes(change)
            if talk is not None and (n, MESSAGES) in numbers:
                number = numbers[n, MESSAGES]
                self.messages.tell(Applied(number, talk.episodes, number - 1), loop)
            if notes is not None:
                number = numbers[n, NOTES]
                self.notes.tell(Applied(number, notes, number - 1), loop)

    async def _was_written(self, changes: Sequence[ChangeSet]) -> bool | None:
        """
        Find out by the random ids of what was added whether it is there; None: it adds nothing, or no one answers.

        By a connection of its own, as one of the pool may lead to a server that is dying. What inserts the row of the
        owner's head waits for whoever holds it or is about to insert it.
        """
        asked = next((query for change in changes if (query := _trace_of(change)) is not None), None)
        if asked is None:
            return None
        owner, sql, params = asked
        for pause in PAUSES_S:
            try:
                con = await psycopg.AsyncConnection.connect(
                    self._connections.settings.dsn, **self._connections.settings.parameters
                )
                async with con:
                    for feed in (MEMORIES, MESSAGES, NOTES):
                        await con.execute(
                            "INSERT INTO heads (owner_id, feed, agent_id, commit_seq, purge_seq)"
                            " VALUES (%s, %s, '', 0, 0) ON CONFLICT DO NOTHING",
                            [owner_key(owner), feed],
                        )
                    found = await (await con.execute(sql.encode(), params)).fetchone()
                    await con.rollback()
                    return found is not None
            except (psycopg.Error, MemorydError, TimeoutError):
                await asyncio.sleep(pause)
        return None

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        key, name = owner_key(owner), rows.request_name(owner, method, request_id)
        select = "SELECT answer, create_time FROM requests WHERE owner_id = %s AND name = %s"
        if not await self._connections.rows(select, [key, name]):
            return None
        try:
            async with self._connections.use() as con, con.transaction():
                await con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                found = await (await con.execute(select.encode(), [key, name])).fetchone()
                named = await (await con.execute(NAMES.encode(), [key, name])).fetchall()
        except psycopg.Error as error:
            raise explained(error, sent=False) from None
        return recorded_of(owner, method, request_id, *found, named=named) if found else None


def _trace_of(change: ChangeSet) -> tuple[Owner, str, list[object]] | None:
    """Return a query that finds something which a change adds under a random id."""
    owner = change.owner
    if owner is None:
        return None
    key = owner_key(owner)
    if change.inserts:
        return owner, "SELECT 1 FROM memories WHERE owner_id = %s AND id = %s", [key, change.inserts[0].memory.id]
    talk = change.conversation
    if talk is not None and talk.messages:
        message = talk.messages[0].message
        where = "owner_id = %s AND thread_id = %s AND id = %s"
        return owner, f"SELECT 1 FROM messages WHERE {where}", [key, message.thread_id, message.id]
    request = change.request
    if request is not None:
        name = rows.request_name(request.owner, request.method, request.request_id)
        return owner, "SELECT 1 FROM requests WHERE owner_id = %s AND name = %s", [key, name]
    return None
