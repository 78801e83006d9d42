"""What came through each grant: rows by owner, grant and day, changed by the statements that store and erase."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime

from memoryd.model.change import ChangeSet, ConversationChange
from memoryd.model.grant import GrantText
from memoryd.store.postgres.statements import Statements

__all__ = ["COUNT_MEMORIES", "COUNT_OFF", "count_change", "count_gone", "drop_empty", "forget_written"]

NOTHING_STORED = "stored_memories <= 0 AND stored_bytes <= 0"
_ADD = (
    " ON CONFLICT (owner_id, grant_id, day) DO UPDATE SET"
    " stored_memories = u.stored_memories + excluded.stored_memories,"
    " stored_bytes = u.stored_bytes + excluded.stored_bytes,"
    " written_messages = u.written_messages + excluded.written_messages"
)


def count_gone(memories: str, size: str, source: str) -> str:
    """
    Return the SQL that counts off what a data-modifying query `source` returns with its grant_id and day.

    Its parameter is the key of the owner.
    """
    return (
        f" INSERT INTO usage AS u SELECT %s, grant_id, day, {memories}, {size}, 0 FROM {source}"
        f" WHERE grant_id <> '' GROUP BY grant_id, day{_ADD}"
    )


COUNT_OFF = count_gone("-count(*)", "-sum(text_bytes)", "gone")
COUNT_MEMORIES = count_gone("0", "sum(new.text_bytes - old.text_bytes)", "new JOIN old USING (id)")


def drop_empty(statements: Statements, key: uuid.UUID) -> None:
    """Remove the rows that count nothing; what was written on a day counts until `forget_written`."""
    statements.add(f"DELETE FROM usage WHERE owner_id = %s AND {NOTHING_STORED} AND written_messages = 0", key)


def forget_written(statements: Statements, before: datetime) -> None:
    """Remove the rows of days before a time that count nothing that is stored."""
    statements.add(f"DELETE FROM usage WHERE {NOTHING_STORED} AND day < %s", before.astimezone(UTC).date())


def count_change(statements: Statements, key: uuid.UUID, change: ChangeSet) -> None:
    """Count what a change adds, as far as it says that itself."""
    sums: defaultdict[tuple[str, date], list[int]] = defaultdict(lambda: [0, 0, 0])
    for grant_id, day, *numbers in _counted(change):
        if grant_id:
            for place, number in enumerate(numbers):
                sums[grant_id, day][place] += number
    for (grant_id, day), numbers in sorted(sums.items()):
        statements.add(f"INSERT INTO usage AS u VALUES (%s, %s, %s, %s, %s, %s){_ADD}", key, grant_id, day, *numbers)


def _counted(change: ChangeSet) -> Iterator[tuple[str, date, int, int, int]]:
    """Yield the grant, the day, and by how many memories, bytes and written messages it counts more."""
    for entry in change.inserts:
        yield entry.memory.grant_id, entry.memory.create_time.date(), 1, entry.memory.text_bytes, 0
    texts = [(sign, some) for note in change.notes for sign, some in ((-1, note.before), (1, note.after))]
    granted = [(sign, note.grant_texts) for sign, note in texts if note is not None]
    talk = change.conversation
    if talk is not None:
        for message, *_ in talk.messages:
            yield message.grant_id, message.create_time.date(), 0, message.text_bytes, 1
        granted += _texts(talk)
    for sign, some in granted:
        for text in some:
            yield text.grant_id, text.day, 0, sign * text.size, 0


def _texts(talk: ConversationChange) -> Iterator[tuple[int, tuple[GrantText, ...]]]:
    """Yield what summaries and working memories of threads that change counted, and count now."""
    changed = {thread.id for thread in talk.threads_before}
    for thread in talk.threads_before:
        yield -1, thread.texts
    for thread in talk.threads:
        if thread.id in changed:
            yield 1, thread.texts
    if talk.working_memory is not None:
        yield 1, talk.working_memory.texts
