"""
What `test_postgres_crash` kills: a process that writes to a server, or reads its feed, and logs each outcome.

`python -m tests.postgres_writer write|read DSN LOG TAG`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from memoryd.errors import Contended, MemorydError, OutcomeUnknown
from memoryd.model.change import ChangeSet, ConversationChange, NewMessage, RecordedRequest
from memoryd.model.conversation import Message, Role, Thread
from memoryd.model.memory import Outcome
from memoryd.model.receipt import AddReceipt, StatementOutcome
from memoryd.model.scope import Owner, Scope
from memoryd.store.postgres import PostgresStore, Settings, open_database
from memoryd.store.postgres.opening import Opened
from memoryd.store.refusal import StoreRefused
from tests.builders import entry, memory

GRANT = "g" * 26
A_TURN = 2  # messages
BEGIN = datetime.now(UTC)
_moments = count()


class Writer:
    """Memories of two users whom all processes share, and threads of users of its own."""

    def __init__(self, store: PostgresStore, log: Path, tag: str) -> None:
        self._store, self._tag = store, tag
        self._log = log.open("a", buffering=1)

    def _tell(self, *told: object) -> None:
        self._log.write(f"{json.dumps(told)}\n")

    async def remember(self, name: str) -> None:
        """Add memories of a shared user, each decided on the last one."""
        owner = Owner("default", Scope(user_id=name))
        while True:
            moment = BEGIN + timedelta(milliseconds=next(_moments))
            one_id = os.urandom(13).hex()
            made = entry(memory("a statement", scope=owner.scope, id=one_id, grant_id=GRANT, create_time=moment))
            receipt = AddReceipt((StatementOutcome(Outcome.INSERTED, owner, made.memory.id),))
            request = RecordedRequest(owner, "AddMemory", os.urandom(8).hex(), "hash", receipt, moment)

            async def write(made=made, request=request) -> None:
                seen = (await self._store.commits.memories.head(owner)).commit_seq
                await self._store.commits.write(ChangeSet(inserts=(made,), request=request, based_on=seen))

            await self._try(write, [made.memory.id])

    async def talk(self, name: str) -> None:
        """Append messages to a thread of a user of this process's own."""
        owner = Owner("default", Scope(user_id=f"{self._tag}{name}"))
        none = Thread(id="t", agent_id="default", scope=owner.scope, create_time=BEGIN, update_time=BEGIN, revision=0)
        thread = none
        while True:
            moment = BEGIN + timedelta(milliseconds=next(_moments))
            first = thread.last_seq + 1
            messages = [
                Message(
                    id=os.urandom(13).hex(), agent_id="default", scope=owner.scope, thread_id="t", seq=first + n,
                    session_id="s", role=Role.USER, content=f"said {first + n}", create_time=moment, grant_id=GRANT,
                )
                for n in range(A_TURN)
            ]  # fmt: skip
            later = replace(thread, revision=thread.revision + 1, last_seq=first + A_TURN - 1, update_time=moment)
            change = ConversationChange(owner, messages=tuple(map(NewMessage, messages)), threads=(later,))

            async def write(change=change) -> None:
                await self._store.commits.write(ChangeSet(conversation=change))

            outcome = await self._try(write, [message.id for message in messages])
            thread = later if outcome == "ok" else await self._as_it_is(none)

    async def _as_it_is(self, thread: Thread) -> Thread:
        """Return a thread as it is now, as soon as the server says so."""
        while True:
            try:
                return await self._store.conversations.thread(thread.owner, thread.id) or thread
            except MemorydError:
                await asyncio.sleep(0.1)

    async def _try(self, write, ids: list[str]) -> str:
        try:
            await write()
        except Contended:
            outcome = "contended"
        except OutcomeUnknown:
            outcome = "unknown"
        except MemorydError:
            outcome = "refused"
        else:
            outcome = "ok"
        self._tell(outcome, *ids)
        if outcome == "refused":
            await asyncio.sleep(0.1)
        return outcome

    async def follow(self) -> None:
        """Read the feed of messages from its beginning, and log what comes."""
        after = 0
        while True:
            try:
                page = await self._store.conversations.numbered(after, limit=50)
            except MemorydError:
                page = []
            for number, message in page:
                self._tell("read", message.id)
                after = number
            await asyncio.sleep(0.02)


async def opened(settings: Settings) -> Opened:
    """Open the database, as soon as its server is there."""
    while True:
        try:
            return open_database(settings, random_bytes=os.urandom)
        except StoreRefused:
            await asyncio.sleep(0.1)  # killed just now: whoever waits for what this process logs has an end


async def main(what: str, dsn: str, log: str, tag: str) -> None:
    """Write, or read, until it is killed."""
    settings = Settings(dsn, pool=6)
    store = PostgresStore(settings, await opened(settings))
    writer = Writer(store, Path(log), tag)
    if what == "read":
        await writer.follow()
    await asyncio.gather(*(writer.remember(f"u{n}") for n in range(2)), *(writer.talk(f"t{n}") for n in range(3)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
