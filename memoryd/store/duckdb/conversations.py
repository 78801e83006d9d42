"""What the DuckDB store answers about conversations: the promises of `store.conversations`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import StoreDamaged
from memoryd.model.batch import NEVER
from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.limits import MAX_PAGE_BYTES, how_many_fit
from memoryd.model.scope import Owner, Scope, Visibility
from memoryd.model.trust import Trust
from memoryd.store import rows
from memoryd.store.conversation_rows import (
    MESSAGE_COLUMNS,
    OWNER,
    SESSION_COLUMNS,
    THREAD_COLUMNS,
    WORKING_COLUMNS,
    message_of,
    session_name,
    session_of,
    thread_key,
    thread_of,
    working_memory_of,
)
from memoryd.store.conversations import MessageHead, MessageSelector, Place, ThreadSelector, thread_name
from memoryd.store.duckdb.episodes import WHOLE
from memoryd.store.duckdb.long_texts import CALLS, CONTENT, LONG_TEXTS, PIECES_MISSING, whole
from memoryd.store.duckdb.pieces import apart, reading, rows_in
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.readers import Readers
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.duckdb.writer import Writer

__all__ = ["DuckDBConversations"]

T = TypeVar("T")
Columns = list[tuple[Any, ...]]
NO_END = 2**62
WINDOW, WIDER = 4, 16  # of a page: how many times its size is looked at, and how much more where that has too few
NUMBER = MESSAGE_COLUMNS.index("number")
MOST_READS = 20  # of a page whose long messages are erased one by one meanwhile
FEW_PLACES = 32  # of messages in several threads
FEW_MESSAGES = 16  # of a page: as many are read whatever their size, 64 MB with all tool calls there may be
OTHERWISE_WRITTEN = r"\\u|[\x{ff01}-\x{ff5e}\x{300}-\x{36f}]"
"""Letters as their numbers in JSON, in full width, or with marks of their own: `contains` finds no word in these."""


def _weight(name: str) -> str:
    """Return the SQL of what a trust in the details of a thread weighs; one that is not written is the host's."""
    cases = " ".join(f"WHEN '{trust.value}' THEN {trust.weight}" for trust in Trust)
    return f"(CASE coalesce(details->>'$.{name}', '{Trust.HOST.value}') {cases} ELSE -1 END)"


UNSUMMARISED = (
    "CAST(details->>'$.view_seq' AS BIGINT) > CASE"
    f" WHEN {_weight('trust')} > {_weight('summary_trust')} THEN 0"
    " ELSE coalesce(CAST(details->>'$.summary_seq' AS BIGINT), 0) END"
)


def _head_of(row: Sequence[Any]) -> MessageHead:
    agent_id, user_id, chat_id, *rest = row
    return MessageHead(Owner(agent_id, Scope(user_id, chat_id)), *rest)


class DuckDBConversations:
    """Threads, sessions and messages as rows."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers, self._writer = readers, writer

    async def _conversation_rows(self, sql: str, params: Sequence[Any], make: Callable[[Sequence[Any]], T]) -> list[T]:
        return await self._readers.read(self._rows, sql, params, make)

    def _rows(self, sql: str, params: Sequence[Any], make: Callable[[Sequence[Any]], T]) -> list[T]:
        """Return what is made of each row, in a thread that reads."""
        return [make(row) for row in self._readers.rows(sql, params)]

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        threads = await self._conversation_rows(
            f"SELECT {', '.join(THREAD_COLUMNS)} FROM threads WHERE name = ?",
            [thread_name(owner, thread_id)],
            thread_of,
        )
        return threads[0] if threads else None

    async def threads(
        self,
        visible: Visibility,
        *,
        limit: int,
        after: Place | None = None,
        prefix: str = "",
    ) -> list[Thread]:
        where, params = _of_owners(visible.owners)
        if prefix:
            where, params = f"{where} AND starts_with(thread_id, ?)", [*params, prefix]
        if after is not None:
            time = rows.naive(after[0])
            where += " AND (update_time < ? OR (update_time = ? AND thread_id < ?))"
            params = [*params, time, time, after[1]]
        return await self._conversation_rows(
            f"SELECT {', '.join(THREAD_COLUMNS)} FROM threads WHERE {where}"
            f" ORDER BY update_time DESC, thread_id DESC LIMIT {int(limit)}",
            params,
            thread_of,
        )

    async def session(self, owner: Owner, thread_id: str, session_id: str) -> Session | None:
        sessions = await self._conversation_rows(
            f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions WHERE name = ?",
            [session_name(owner, thread_id, session_id)],
            session_of,
        )
        return sessions[0] if sessions else None

    async def sessions(
        self,
        owners: Collection[Owner],
        *,
        limit: int,
        after: Place | None = None,
        thread_id: str = "",
        states: Collection[SessionState] = (),
    ) -> list[Session]:
        where, params = _of_owners(owners)
        if thread_id:
            where, params = f"{where} AND thread_id = ?", [*params, thread_id]
        if states:
            where += " AND state IN (SELECT unnest(?::VARCHAR[]))"
            params = [*params, [state.value for state in states]]
        if after is not None:
            time = rows.naive(after[0])
            where += " AND (start_time < ? OR (start_time = ? AND session_id < ?))"
            params = [*params, time, time, after[1]]
        return await self._conversation_rows(
            f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions WHERE {where}"
            f" ORDER BY start_time DESC, session_id DESC LIMIT {int(limit)}",
            params,
            session_of,
        )

    async def messages(self, selector: MessageSelector) -> list[Message]:
        return await self._readers.read(self._messages, selector)

    def _messages(self, selector: MessageSelector) -> list[Message]:
        limit = selector.limit
        if selector.most_bytes and limit > FEW_MESSAGES:  # sizes are read before texts: the longest have a gigabyte
            limit = selector.fitting([size for (size,) in self._selected(["text_bytes"], selector, limit)])
        messages = [message for _, message in self._whole(lambda: self._selected(MESSAGE_COLUMNS, selector, limit))]
        return messages[-selector.fitting([message.text_bytes for message in messages]) :]

    def _whole(self, read: Callable[[], Columns], names: Collection[str] = LONG_TEXTS) -> list[tuple[int, Message]]:
        """Return the messages of rows of MESSAGE_COLUMNS with their numbers, as they are at one time."""
        for _ in range(MOST_READS):  # of what is erased between row and pieces both are gone the next time
            found = whole(self._readers.rows, read(), MESSAGE_COLUMNS, names)
            if found is not None:
                return [(int(row[NUMBER]), message_of(row)) for row in found]
        raise StoreDamaged(PIECES_MISSING)

    async def heads(self, selector: MessageSelector) -> list[MessageHead]:
        columns = (*OWNER, "thread_id", "seq", "id", "text_bytes")
        return list(map(_head_of, await self._readers.read(self._selected, columns, selector, selector.limit)))

    def _selected(self, columns: Sequence[str], selector: MessageSelector, limit: int) -> Columns:
        """Return some columns of the messages that a selector takes, in the order of thread and seq."""
        owner, sql = selector.owner, f"SELECT {', '.join(columns)} FROM messages"
        if selector.places is not None:
            return [] if owner is None else self._at(columns, owner, selector.places)
        if selector.ids is not None and not selector.ids:
            return []
        where, params = ("true", []) if owner is None else _of_thread(owner, selector.thread_id)
        if selector.ids is not None:
            where, params = f"{where} AND id IN (SELECT unnest(?::VARCHAR[]))", [*params, list(selector.ids)]
        if selector.session_id:
            where += " AND json_extract_string(details, '$.session_id') = ?"
            params = [*params, selector.session_id]
        if selector.is_from_end and limit:
            found = self._last(f"{sql} WHERE {where}", params, limit, selector.before, selector.after)
            return found[::-1]
        most = f" LIMIT {int(limit)}" if limit else ""
        return self._readers.rows(
            f"{sql} WHERE {where} AND seq > ? AND seq < ? ORDER BY thread_id, seq{most}",
            [*params, selector.after, selector.before or NO_END],
        )

    def _last(self, sql: str, params: Sequence[Any], limit: int, before: int, after: int) -> Columns:
        """Return the last rows of a thread between two places, the last one first."""
        sql = f"{sql} AND seq > ? AND seq < ? ORDER BY seq DESC LIMIT {int(limit)}"
        width = WINDOW * limit
        while True:  # by windows, which zone maps find: without one, all that is before would be sorted
            low = max(after, before - width) if before else after
            found = self._readers.rows(sql, [*params, low, before or NO_END])
            if len(found) >= limit or low <= after:
                return found
            width *= WIDER

    def _at(self, columns: Sequence[str], owner: Owner, places: Collection[tuple[str, int]]) -> Columns:
        """Return columns of the messages at some places."""
        if not places:
            return []
        where, params = of_owner(owner)
        keys = {thread_id: thread_key(owner, thread_id) for thread_id, _ in places}
        wanted = sorted({(keys[thread_id], seq) for thread_id, seq in places})
        threads, seqs = [key for key, _ in wanted], [seq for _, seq in wanted]
        pairs, more = "", []
        if len(wanted) > FEW_PLACES:  # of fewer, those of the same thread or number that come along cost less
            pairs = " AND (thread, seq) IN (SELECT unnest(?::BIGINT[]), unnest(?::BIGINT[]))"
            more = [threads, seqs]
        found = self._readers.rows(
            f"SELECT thread_id, seq, {', '.join(columns)} FROM messages WHERE {where}"
            f" AND thread IN (SELECT unnest(?::BIGINT[])) AND seq IN (SELECT unnest(?::BIGINT[])){pairs}"
            " ORDER BY thread_id, seq",
            [*params, sorted({*threads}), sorted({*seqs}), *more],
        )
        return [row[2:] for row in found if row[:2] in places]

    async def _naming(self, after: int, owner: Owner, words: Sequence[str], limit: int) -> list[tuple[int, Message]]:
        where, params = of_owner(owner)
        text = "lower(content || ' ' || details || ' ' || metadata)"
        condition = " OR ".join(f"contains({text}, ?)" for _ in words)
        condition += f" OR regexp_matches({text}, '{OTHERWISE_WRITTEN}') OR piece_count > 0"
        found: list[tuple[int, Message]] = []
        while not found:  # what is erased between the two reads is not there, and is not the end
            sizes = await self._conversation_rows(
                f"SELECT number, text_bytes FROM messages WHERE {where} AND number > ? AND ({condition})"
                f" ORDER BY number LIMIT {int(limit)}",
                [*params, after, *words],
                lambda row: (int(row[0]), int(row[1])),
            )
            if not sizes:
                break
            after = sizes[-1][0]
            while sizes:  # texts in parts, as in `messages`: the longest have a gigabyte
                fitting = max(1, how_many_fit((size for _, size in sizes), MAX_PAGE_BYTES))
                numbers, sizes = [number for number, _ in sizes[:fitting]], sizes[fitting:]
                sql = (
                    f"SELECT {', '.join(MESSAGE_COLUMNS)} FROM messages WHERE {where}"
                    " AND number IN (SELECT unnest(?::BIGINT[])) ORDER BY number"
                )
                read = partial(self._readers.rows, sql, [*params, numbers])
                found += await self._readers.read(self._whole, read)
        return found

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        columns = ", ".join(WORKING_COLUMNS)
        working_memories = await self._conversation_rows(
            f"SELECT {columns} FROM working_memories WHERE name = ?",
            [thread_name(owner, "")],
            working_memory_of,
        )
        return working_memories[0] if working_memories else WorkingMemory()

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
        if len(vector) not in self._writer.message_vectors.dimensions:
            return []
        where, params = _of_owners(list(owners))
        if thread_id:
            where, params = f"{where} AND thread_id = ?", [*params, thread_id]
        if exclude_thread_ids:
            where += " AND thread_id NOT IN (SELECT unnest(?::VARCHAR[]))"
            params = [*params, list(exclude_thread_ids)]
        cosine = f"array_cosine_similarity({column_of(len(vector))}, ?::FLOAT[{len(vector)}])"
        columns = ", ".join(f"m.{name}" for name in MESSAGE_COLUMNS)
        sql = (
            f"SELECT {columns}, v.similarity FROM (SELECT id, thread, {cosine} AS similarity FROM message_vectors"
            f" WHERE {where} AND fingerprint = ? AND {WHOLE} ORDER BY similarity DESC LIMIT {int(limit)}) AS v"
            " JOIN messages AS m ON m.id = v.id AND m.thread = v.thread ORDER BY v.similarity DESC"
        )
        similarities: dict[int, float] = {}

        def read() -> Columns:
            found = self._readers.rows(sql, [vector, *params, fingerprint])
            similarities.update({int(row[NUMBER]): float(row[-1]) for row in found})
            return [row[:-1] for row in found]

        messages = await self._readers.read(self._whole, read)
        return [(message, similarities[number]) for number, message in messages]

    async def scan_threads(self, selector: ThreadSelector, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        conditions, order = ["true"], "name"
        params: list[Any] = []
        if selector.idle_since is not None and selector.ahead_of is not None:
            conditions.append("session_id <> '' AND (update_time < ? OR update_time > ?)")
            params += [rows.naive(selector.idle_since), rows.naive(selector.ahead_of)]
            order = "update_time"
        if selector.is_unsummarised:
            conditions.append(UNSUMMARISED)
        if after:
            conditions.append("name > ?")
            params.append(after)
        return await self._conversation_rows(
            f"SELECT name, {', '.join(THREAD_COLUMNS)} FROM threads WHERE {' AND '.join(conditions)}"
            f" ORDER BY {order} LIMIT {int(limit)}",
            params,
            lambda row: (str(row[0]), thread_of(row[1:])),
        )

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        return await self._conversation_rows(
            f"SELECT name, {', '.join(SESSION_COLUMNS)} FROM sessions WHERE state = 'pending' AND name > ?"
            f" ORDER BY name LIMIT {int(limit)}",
            [after],
            lambda row: (str(row[0]), session_of(row[1:])),
        )

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
        if owner is not None:
            return await self._naming(after, owner, words, limit)
        columns = ", ".join(
            "'' AS metadata" if name == "metadata" else name for name in MESSAGE_COLUMNS if name != "number"
        )

        def read() -> list[tuple[int, Message]]:
            cursor = self._readers.cursor()
            with reading(cursor):
                size, most = f"text_bytes > {int(above_bytes)}", NEVER if until is None else until
                source = f"messages WHERE number > ? AND number <= ? AND {size} ORDER BY number LIMIT {int(limit)}"
                window = next(rows_in(cursor, "number", source, [after, most]).windows(), None)
                if window is None:
                    return []
                where, key = f"number >= ? AND number <= ? AND {size}", "thread, id"
                rows = apart(f"thread, {columns}", f"{key}, number", "messages", where, key=key)
                names = ", ".join(MESSAGE_COLUMNS)
                found = cursor.execute(f"SELECT {names} FROM ({rows}) ORDER BY number", [*window, *window]).fetchall()
                return self._whole(lambda: found, (CONTENT, CALLS))

        return await self._readers.read(read)

    async def first_said(self, after: int, *, limit: int) -> list[FirstSaid]:
        page = (
            f"SELECT number, {', '.join(OWNER)}, thread_id, seq, create_time FROM messages"
            f" WHERE number > ? ORDER BY number LIMIT {int(limit)}"
        )
        return await self._conversation_rows(
            f"SELECT {', '.join(OWNER)}, thread_id, min(seq), arg_min(create_time, seq), max(number), count(*)"
            f" FROM ({page}) GROUP BY ALL ORDER BY min(number)",
            [after],
            lambda row: FirstSaid(
                Owner(row[0], Scope(row[1], row[2])),
                row[3],
                row[4],
                row[5].replace(tzinfo=UTC),
                row[6],
                row[7],
            ),
        )

    async def totals(self, after: int = 0) -> tuple[int, int]:
        found = await self._conversation_rows(
            "SELECT count(*), count(*) FILTER (number > ?) FROM messages",
            [after],
            tuple,
        )
        return int(found[0][0]), int(found[0][1])


def _of_thread(owner: Owner, thread_id: str) -> tuple[str, list[Any]]:
    where, params = of_owner(owner)
    return f"thread = ? AND {where} AND thread_id = ?", [thread_key(owner, thread_id), *params, thread_id]


def _of_owners(owners: Collection[Owner]) -> tuple[str, list[Any]]:
    """Return the condition that a row belongs to one of one or two owners, of tables with few rows."""
    clauses = [of_owner(owner) for owner in owners]
    where = " OR ".join(f"({condition})" for condition, _ in clauses)
    return f"({where or 'false'})", [value for _, params in clauses for value in params]
