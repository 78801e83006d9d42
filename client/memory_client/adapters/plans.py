"""
What an adapter does, said once for plain code and for asyncio.

A plan is a generator: it yields calls of a client's methods, is sent their answers or thrown their errors, and returns
the result. `run` makes the calls by a MemoryClient, `arun` by an AsyncMemoryClient.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from memoryd.errors import MemorydError

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient, MemoryClient

__all__ = ["Ask", "Pause", "Plan", "arun", "ask", "every_note", "pause", "run"]

T = TypeVar("T")
PAGE = 100


@dataclass(frozen=True, slots=True)
class Ask:
    """One call: the method of a client, whose it is where that is not the client's own user, and its arguments."""

    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait of some seconds."""

    seconds: float


Plan = Generator[Ask | Pause, Any, T]


def ask(method: str, *arguments: Any, user_id: str | None = None, **named: Any) -> Plan[Any]:
    """Make one call, and return its answer."""
    answer = yield Ask(method, arguments, named, user_id)
    return answer


def pause(seconds: float) -> Plan[None]:
    """Wait some seconds."""
    yield Pause(seconds)


def every_note(prefix: str, most: int, *, user_id: str | None = None, with_content: bool = False) -> Plan[list[Any]]:
    """Return the notes whose path begins so; ValueError where there are more than `most`."""
    found: list[Any] = []
    token = ""
    while True:
        page = yield from ask(
            "notes", prefix, page_size=PAGE, page_token=token, with_content=with_content, user_id=user_id
        )
        found += page.notes
        token = page.next_page_token
        if not token:
            return found
        if len(found) >= most:
            raise ValueError(f"more than {most} notes begin with {prefix!r}; name a longer prefix")


def _method(client: Any, step: Ask) -> Any:
    if step.user_id is not None:
        identity = client.identity
        client = client.acting_for(user_id=step.user_id, chat_id=identity.chat_id, agent_id=identity.agent_id)
    return getattr(client, step.method)


def run(client: MemoryClient, plan: Plan[T]) -> T:
    """Carry a plan out, and return its result."""
    try:
        step = next(plan)
        while True:
            try:
                if isinstance(step, Pause):
                    answer = None
                    time.sleep(step.seconds)
                else:
                    answer = _method(client, step)(*step.arguments, **step.named)
            except MemorydError as error:
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def arun(client: AsyncMemoryClient, plan: Plan[T]) -> T:
    """Carry a plan out, and return its result."""
    try:
        step = next(plan)
        while True:
            try:
                if isinstance(step, Pause):
                    answer = None
                    await asyncio.sleep(step.seconds)
                else:
                    answer = await _method(client, step)(*step.arguments, **step.named)
            except MemorydError as error:
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result
