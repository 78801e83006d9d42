"""
What a model may say when it calls a tool.

No argument says who asks: the socket or the token does. An argument that is not known is refused, so that a model never
believes that it searched for someone else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from memoryd.errors import InvalidArgument, LimitExceeded

__all__ = [
    "About",
    "Arguments",
    "Context",
    "Correct",
    "ForgetPerson",
    "ListMemories",
    "Log",
    "Named",
    "Nothing",
    "Recent",
    "Remember",
    "Search",
    "read",
]

MOST_NAMES = 16
MOST_HITS = 50
_NAME = re.compile(r"[a-z_]{1,40}")


def _time(text: str) -> str:
    """Return a text if it is a day or a time; ValueError if not."""
    if text:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("must be a day or a time, as 2026-12-31 or 2026-12-31T18:00:00Z") from None
    return text


def time_of(text: str) -> datetime | None:
    """Return the time of a checked text, local to the server where it names no zone; None for an empty one."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (OverflowError, ValueError):
        raise InvalidArgument("a time lies outside the calendar", field="time") from None


Time = Annotated[str, AfterValidator(_time)]
Id = Annotated[str, Field(description="id of a memory, or at least its first 8 characters")]
Thread = Annotated[str, Field(description="name of the conversation, at most 128 bytes")]
Shared = Annotated[bool, Field(description="of the chat that the server is bound to, seen by all its members")]


class Arguments(BaseModel):
    """The arguments of a tool: what is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class Nothing(Arguments):
    """A tool without arguments."""


class Remember(Arguments):
    """What is remembered."""

    text: Annotated[str, Field(description="one lasting statement in the user's own words, at most 8 KiB")]
    about: Annotated[
        list[str], Field(description="names of the people or things that it is about", max_length=MOST_NAMES)
    ] = []
    kind: Annotated[
        Literal["fact", "preference", "event", "procedure"],
        Field(description="an event has happened; a procedure says how something is done"),
    ] = "fact"
    when: Annotated[Time, Field(description="when it was so: a day or an RFC 3339 time; leave it out for now")] = ""
    shared: Shared = False


class Search(Arguments):
    """What is searched for."""

    query: Annotated[str, Field(description="the question, as the user asks it")]
    limit: Annotated[int, Field(description="how many hits at most", ge=1, le=MOST_HITS)] = 10
    about: Annotated[str, Field(description="only what names this person or thing")] = ""
    since: Annotated[Time, Field(description="only what was so at this day or time, or later")] = ""
    until: Annotated[Time, Field(description="only what was so before this day or time")] = ""


class ListMemories(Arguments):
    """Which page is listed."""

    cursor: Annotated[str, Field(description="next_cursor of the page before; leave it out for the first")] = ""


class Named(Arguments):
    """Which memory is meant."""

    id: Id


class Correct(Arguments):
    """What a memory should say."""

    id: Id
    text: Annotated[str, Field(description="the whole statement as it is right, at most 8 KiB")]


class ForgetPerson(Arguments):
    """Who is forgotten."""

    name: Annotated[str, Field(description="name or id of the person")]
    dry_run: Annotated[
        bool, Field(description="true only tells what would go; false erases it, which cannot be undone")
    ] = True


class About(Arguments):
    """Who or what is told about."""

    name: Annotated[str, Field(description="name or id of a person or thing")]


class Context(Arguments):
    """For what the context is."""

    prompt: Annotated[str, Field(description="what the user just said")]
    thread: Annotated[str, Field(description="name of the conversation; its last messages come along")] = ""
    shared: Shared = False


class Log(Arguments):
    """What was said."""

    thread: Thread
    role: Annotated[Literal["user", "assistant", "system", "tool"], Field(description="who said it")]
    text: Annotated[str, Field(description="what was said, at most 256 KiB")]
    shared: Shared = False


class Recent(Arguments):
    """Which conversation is read."""

    thread: Thread
    shared: Shared = False


A = TypeVar("A", bound=Arguments)


def read(model: type[A], given: Mapping[str, Any]) -> A:
    """Return the arguments of a call; InvalidArgument names the first that is wrong, and repeats nothing of it."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        called = f" {name}" if _NAME.fullmatch(name) else " of that name"
        known = ", ".join(model.model_fields) or "none"
        raise InvalidArgument(
            f"there is no argument{called}; known are {known}. Who asks is said by the socket or the token"
        )
    if first["type"] == "too_long":
        raise LimitExceeded(f"{name} has more than {MOST_NAMES} entries", field=name, limit=name)
    told = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").removeprefix("Field ")
    raise InvalidArgument(f"{name} {'is' if told == 'required' else '-'} {told}", field=name)
