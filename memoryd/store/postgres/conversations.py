"""What the store answers about conversations: the promises of `store.conversations`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.model.batch import NEVER
from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.limits import MAX_PAGE_BYTES, how_many_fit
from memoryd.model.scope import Owner, Scope, Visibility
from memoryd.store import rows
from memoryd.store.conversation_rows import (
    SESSION_COLUMNS,
    THREAD_COLUMNS,
    WORKING_COLUMNS,
    message_of,
    session_of,
    thread_of,
    working_memory_of,
)
from memoryd.store.conversations import MessageHead, MessageSelector, Place, ThreadSelector
from memoryd.store.loading import MOST_BYTES
from memoryd.store.postgres.connect import Connections, Row
from memoryd.store.postgres.queries import MESSAGE
from memoryd.store.postgres.statements import owner_key

__all__ = ["PostgresConversations"]

NO_END = 2**62
HEAD = ("m.agent_id", "m.user_id", "m.chat_id", "m.thread_id", "m.seq", "m.id", "m.text_bytes")
FEW_MESSAGES = 16  # of a page: as many are read whatever their size
AT_ONCE = 4096  # vectors that are compared at a time
OTHERWISE_WRITTEN = r"\\u|[\uff01-\uff5e\u0300-\u036f]"
"""Letters as their numbers in JSON, in full width, or with marks of their own: no word is found in these."""


def _head_of(row: Sequence[Any]) -> MessageHead:
    agent_id, user_id, chat_id, *rest = row
    return MessageHead(Owner(agent_id, Scope(user_id, chat_id)), *rest)


def _place(name: str, count: int) -> list[str]:
    """Return the parts of a key of `scan_threads` or `pending_sessions`; those of the first one where it is empty."""
    return name.split("\x1f", count - 1) if name else ["00000000-0000-0000-0000-000000000000", *[""] * (count - 1)]


class PostgresConversations:
    """Threads, sessions and messages as rows."""

    def __init__(self, connections: Connections) -> None:
        self._rows = connections.rows

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        found = await self._rows(
            f"SELECT {', '.join(THREAD_COLUMNS)} FROM threads WHERE owner_id = %s AND thread_id = %s",
            [owner_key(owner), thread_id],
        )
        return thread_of(found[0]) if found else None

    async def threads(
        self,
        visible: Visibility,
        *,
        limit: int,
        after: Place | None = None,
        prefix: str = "",
    ) -> list[Thread]:
        where, params = "owner_id = ANY(%s)", list[Any]([[owner_key(owner) for owner in visible.owners]])
        if prefix:
            where, params = f"{where} AND starts_with(thread_id, %s)", [*params, prefix]
        if after is not None:
            where, params = (
                f"{where} AND (update_time, thread_id) < (%s, %s)",
                [*params, rows.naive(after[0]), after[1]],
            )
        found = await self._rows(
            f"SELECT {', '.join(THREAD_COLUMNS)} FROM threads WHERE {where}"
            f" ORDER BY update_time DESC, thread_id DESC LIMIT {int(limit)}",
            params,
        )
        return list(map(thread_of, found))

    async def scan_threads(self, selector: ThreadSelector, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        conditions, params, order = ["true"], list[Any](), "owner_id, thread_id"
        if selector.idle_since is not None and selector.ahead_of is not None:
            conditions.append("session_id <> '' AND (update_time < %s OR update_time > %s)")
            params += [rows.naive(selector.idle_since), rows.naive(selector.ahead_of)]
            order = "update_time"
        if selector.is_unsummarised:
            conditions.append("is_unsummarised")
        if after:
            conditions.append("(owner_id, thread_id) > (%s::uuid, %s)")
            params += _place(after, 2)
        found = await self._rows(
            f"SELECT owner_id::text || chr(31) || thread_id, {', '.join(THREAD_COLUMNS)} FROM threads"
            f" WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {int(limit)}",
            params,
        )
        return [(row[0], thread_of(row[1:])) for row in found]

    async def session(self, owner: Owner, thread_id: str, session_id: str) -> Session | None:
        found = await self._rows(
            f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions"
            " WHERE owner_id = %s AND thread_id = %s AND session_id = %s",
            [owner_key(owner), thread_id, session_id],
        )
        return session_of(found[0]) if found else None

    async def sessions(
        self,
        owners: Collection[Owner],
        *,
        limit: int,
        after: Place | None = None,
        thread_id: str = "",
        states: Collection[SessionState] = (),
    ) -> list[Session]:
        where, params = "owner_id = ANY(%s)", list[Any]([[owner_key(owner) for owner in owners]])
        if thread_id:
            where, params = f"{where} AND thread_id = %s", [*params, thread_id]
        if states:
            where, params = f"{where} AND state = ANY(%s)", [*params, [state.value for state in states]]
        if after is not None:
            where, params = (
                f"{where} AND (start_time, session_id) < (%s, %s)",
                [*params, rows.naive(after[0]), after[1]],
            )
        found = await self._rows(
            f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions WHERE {where}"
            f" ORDER BY start_time DESC, session_id DESC LIMIT {int(limit)}",
            params,
        )
        return list(map(session_of, found))

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        found = await self._rows(
            f"SELECT owner_id::text || chr(31) || thread_id || chr(31) || session_id, {', '.join(SESSION_COLUMNS)}"
            " FROM sessions WHERE state = 'pending' AND (owner_id, thread_id, session_id) > (%s::uuid, %s, %s)"
            f" ORDER BY owner_id, thread_id, session_id LIMIT {int(limit)}",
            _place(after, 3),
        )
        return [(row[0], session_of(row[1:])) for row in found]

    async def messages(self, selector: MessageSelector) -> list[Message]:
        limit = selector.limit
        if selector.most_bytes and limit > FEW_MESSAGES:  # sizes are read before texts: the longest have a gigabyte
            limit = selector.fitting([size for (size,) in await self._selected(["m.text_bytes"], selector, limit)])
        found = await self._selected(MESSAGE, selector, limit)
        messages = list(map(message_of, found))
        return messages[-selector.fitting([message.text_bytes for message in messages]) :]

    async def heads(self, selector: MessageSelector) -> list[MessageHead]:
        return list(map(_head_of, await self._selected(HEAD, selector, selector.limit)))

    async def _selected(self, columns: Sequence[str], selector: MessageSelector, limit: int) -> list[Row]:
        """Return some columns of the messages that a selector takes, in the order of thread and seq."""
        sql, owner = f"SELECT {', '.join(columns)} FROM messages AS m", selector.owner
        if selector.places is not None:
            wanted = sorted(set(selector.places))
            if not wanted or owner is None:
                return []
            return await self._rows(
                f"{sql} JOIN unnest(%s::text[], %s::int8[]) AS p(thread_id, seq) ON m.thread_id = p.thread_id"
                " AND m.seq = p.seq WHERE m.owner_id = %s ORDER BY m.thread_id, m.seq",
                [[thread_id for thread_id, _ in wanted], [seq for _, seq in wanted], owner_key(owner)],
            )
        conditions: list[str] = ["m.seq > %s AND m.seq < %s"]
        params: list[Any] = [selector.after, selector.before or NO_END]
        if owner is not None:
            conditions.append("m.owner_id = %s AND m.thread_id = %s")
            params += [owner_key(owner), selector.thread_id]
        if selector.ids is not None:
            conditions.append("m.id = ANY(%s)")
            params.append(list(selector.ids))
        if selector.session_id:
            conditions.append("m.details::json->>'session_id' = %s")
            params.append(selector.session_id)
        direction = " DESC" if selector.is_from_end and limit else ""
        most = f" LIMIT {int(limit)}" if limit else ""
        found = await self._rows(
            f"{sql} WHERE {' AND '.join(conditions)} ORDER BY m.thread_id{direction}, m.seq{direction}{most}", params
        )
        return found[::-1] if direction else found

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
        # up to where every transaction has ended: a number is that of a transaction, so none comes in below
        where = "m.number > %s AND m.number <= %s AND m.number < feed_end() AND m.text_bytes > %s"
        params = [after, NEVER if until is None else until, above_bytes]
        sizes = await self._rows(
            f"SELECT m.number, 2 * m.text_bytes FROM messages AS m WHERE {where} ORDER BY m.number LIMIT {int(limit)}",
            params,
        )
        if not sizes:
            return []
        fitting = max(1, how_many_fit((size for _, size in sizes), MOST_BYTES))
        columns = ["''" if name == "m.metadata" else name for name in MESSAGE]
        return await self._of_numbers(columns, "true", [], [number for number, _ in sizes[:fitting]])

    async def _naming(self, after: int, owner: Owner, words: Sequence[str], limit: int) -> list[tuple[int, Message]]:
        own, key = "m.owner_id = %s", owner_key(owner)
        text = "lower(m.content || ' ' || m.details || ' ' || m.metadata)"
        condition = " OR ".join([*(f"strpos({text}, %s) > 0" for _ in words), f"{text} ~ %s"])
        found: list[tuple[int, Message]] = []
        while not found:  # what is erased between the two reads is not there, and is not the end
            sizes = await self._rows(
                f"SELECT m.number, m.text_bytes FROM messages AS m WHERE {own} AND m.number > %s AND ({condition})"
                f" ORDER BY m.number LIMIT {int(limit)}",
                [key, after, *words, OTHERWISE_WRITTEN],
            )
            if not sizes:
                break
            after = sizes[-1][0]
            while sizes:  # texts in parts, as in `messages`
                fitting = max(1, how_many_fit((size for _, size in sizes), MAX_PAGE_BYTES))
                numbers, sizes = [number for number, _ in sizes[:fitting]], sizes[fitting:]
                found += await self._of_numbers(MESSAGE, own, [key], numbers)
        return found

    async def _of_numbers(
        self, columns: Sequence[str], where: str, params: Sequence[Any], numbers: Sequence[int]
    ) -> list[tuple[int, Message]]:
        found = await self._rows(
            f"SELECT m.number, {', '.join(columns)} FROM messages AS m WHERE {where} AND m.number = ANY(%s)"
            " ORDER BY m.number",
            [*params, list(numbers)],
        )
        return [(row[0], message_of(row[1:])) for row in found]

    async def first_said(self, after: int, *, limit: int) -> list[FirstSaid]:
        found = await self._rows(
            "SELECT number, agent_id, user_id, chat_id, thread_id, seq, create_time FROM messages"
            f" WHERE number > %s AND number < feed_end() ORDER BY number LIMIT {int(limit)}",
            [after],
        )
        firsts: dict[tuple[Any, ...], list[Any]] = {}
        for number, *whose, seq, time in found:
            first = firsts.setdefault(tuple(whose), [seq, time, number, 0])
            if seq < first[0]:
                first[:2] = seq, time
            first[2:] = number, first[3] + 1
        return [
            FirstSaid(Owner(agent_id, Scope(user_id, chat_id)), thread_id, seq, rows.aware(time), number, count)
            for (agent_id, user_id, chat_id, thread_id), (seq, time, number, count) in firsts.items()
        ]

    async def totals(self, after: int = 0) -> tuple[int, int]:
        found = await self._rows("SELECT count(*), count(*) FILTER (WHERE number > %s) FROM messages", [after])
        return int(found[0][0]), int(found[0][1])

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        found = await self._rows(
            f"SELECT {', '.join(WORKING_COLUMNS)} FROM working_memories WHERE owner_id = %s", [owner_key(owner)]
        )
        return working_memory_of(found[0]) if found else WorkingMemory()

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
        query, best, after = np.asarray(vector, dtype=np.float32), list[tuple[float, int]](), 0
        conditions = "m.owner_id = ANY(%s) AND v.fingerprint = %s AND length(v.vector) = %s"
        params: list[Any] = [[owner_key(owner) for owner in owners], fingerprint, 4 * len(vector)]
        if thread_id:
            conditions, params = f"{conditions} AND m.thread_id = %s", [*params, thread_id]
        if exclude_thread_ids:
            conditions, params = f"{conditions} AND NOT m.thread_id = ANY(%s)", [*params, list(exclude_thread_ids)]
        while found := await self._rows(
            "SELECT m.number, v.vector FROM message_vectors AS v JOIN messages AS m USING (owner_id, number)"
            f" WHERE {conditions} AND m.number > %s ORDER BY m.number LIMIT {AT_ONCE}",
            [*params, after],
        ):
            after = found[-1][0]
            held = np.frombuffer(b"".join(row[1] for row in found), dtype="<f4").reshape(len(found), -1)
            cosines = held @ query
            places = np.argsort(-cosines, kind="stable")[:limit].tolist()
            best += [(float(cosines[n]), found[n][0]) for n in places]
            best = sorted(best, key=lambda hit: -hit[0])[:limit]
        messages = dict(await self._of_numbers(MESSAGE, "true", [], [number for _, number in best]))
        return [(messages[number], cosine) for cosine, number in best if number in messages]
