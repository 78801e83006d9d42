"""What is offered as a message: checked, and without credentials where it is stored."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits
from memoryd.model.conversation import Message, Role, ToolCall
from memoryd.model.validation import check_id, check_text, check_time, check_written_out

__all__ = ["MASK", "Masker", "MessageDraft"]

ROLES = {"developer": "system", "function": "tool", "human": "user", "ai": "assistant", "model": "assistant"}
"""What the APIs of models call a role that has another name here."""
MASK = "[masked]"  # what stands in place of a credential
_SAID = ("content", "role", "name", "tool_calls", "tool_call_id", "input_source", "metadata")
CHARACTERS_A_CALL = 64  # what the name and the id of a tool call count as


class Masker(Protocol):
    """Takes credentials out of the texts of one call."""

    def mask(self, text: str) -> str:
        """Return a text with MASK in place of each credential."""
        ...

    def mask_json(self, text: str) -> str:
        """Return JSON likewise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message that is offered: what the caller says of it, checked and in NFC."""

    content: str = ""
    role: Role = Role.USER
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    input_source: str = ""
    metadata: str = ""
    """A JSON object as text; a mapping becomes one."""
    id: str = ""
    """For hosts and importers; empty: the daemon makes one."""
    create_time: datetime | None = None
    """For hosts and importers; None: now."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        try:
            put(self, "role", Role[Role(ROLES.get(str(self.role), self.role)).name])
        except (ValueError, KeyError):
            known = ", ".join(role.value for role in Role)
            raise InvalidArgument(f"role is {self.role!r}; it must be one of {known}", field="role") from None
        put(self, "content", check_text(self.content, "content", limit=limits.MAX_MESSAGE_CONTENT_BYTES))
        for name in ("name", "tool_call_id", "input_source", "id"):
            put(self, name, check_id(getattr(self, name), name))
        calls, more = _checked_calls(self.tool_calls)
        put(self, "tool_calls", calls)
        put(self, "metadata", _checked_metadata(self.metadata, more))
        put(self, "create_time", check_time(self.create_time, "create_time"))
        if not self.content.strip() and not self.tool_calls:
            raise InvalidArgument("content is empty; say something, or name a tool call", field="content")

    @property
    def characters(self) -> int:
        """How much there is to look through: its texts, and something for each name and id."""
        calls = sum(len(call.arguments) + CHARACTERS_A_CALL for call in self.tool_calls)
        return len(self.content) + len(self.metadata) + calls

    def says_the_same(self, message: Message) -> bool:
        """Whether a message that is stored says what this one says, whenever it was said."""
        return all(getattr(self, name) == getattr(message, name) for name in _SAID)

    def masked(self, masker: Masker, is_token: Callable[[str], bool]) -> MessageDraft:
        """
        Return it without credentials; a text may be longer then, and is kept all the same.

        Of names and ids only tokens are masked: a number in them may be anybody's.
        """

        def name_of(text: str) -> str:
            return MASK if is_token(text) else text

        done = copy.copy(self)
        put = object.__setattr__
        for name in ("name", "tool_call_id", "input_source"):
            put(done, name, name_of(getattr(self, name)))
        put(done, "content", masker.mask(self.content))
        put(done, "metadata", masker.mask_json(self.metadata))
        calls = (
            ToolCall(name_of(tool_call.name), masker.mask_json(tool_call.arguments), name_of(tool_call.id))
            for tool_call in self.tool_calls
        )
        put(done, "tool_calls", tuple(calls))
        return done


def _checked_calls(calls: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], list[dict[str, Any]]]:
    """Return tool calls, checked, and of each what else the API of a model says of it."""
    if isinstance(calls, str | Mapping | ToolCall) or not isinstance(calls, Sequence):
        raise InvalidArgument("tool_calls must be a list of ToolCall", field="tool_calls")
    if len(calls) > limits.MAX_TOOL_CALLS:
        raise LimitExceeded(
            f"tool_calls has {len(calls)} entries; the limit is {limits.MAX_TOOL_CALLS}",
            field="tool_calls",
            limit="tool_calls",
        )
    read = [_tool_call(call, f"tool_calls[{n}]") for n, call in enumerate(calls)]
    return tuple(call.checked(f"tool_calls[{n}]") for n, (call, _) in enumerate(read)), [more for _, more in read]


def _tool_call(value: object, name: str) -> tuple[ToolCall, dict[str, Any]]:
    """
    Return a tool call, of a mapping as the APIs of models have it, and what else that says of it.

    Known are {"id", "function": {"name", "arguments"}} and flat ones with "arguments", "input" or "args" and with
    "call_id", "id" or "toolUseId". Where there are both, "call_id" is what the result names (OpenAI's Responses).
    InvalidArgument for a field that is not known, so that nothing is lost.
    """
    if isinstance(value, ToolCall):
        return value, {}
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{name} must be a ToolCall, or a mapping with its name and arguments", field=name)
    told = next((value[key] for key in _NESTED if isinstance(value.get(key), Mapping)), value)
    found: dict[str, Any] = {key: one[key] for one in (value, told) for key in one if key not in _NESTED}
    unknown = found.keys() - {"name", "type", *_ARGUMENTS, *_CALL_IDS, *_MORE}
    if unknown or not found.get("name"):
        what = f"holds {min(unknown)!r}, which is not known here" if unknown else "has no name"
        raise InvalidArgument(f"{name} {what}; give a ToolCall with name, arguments and id", field=name)
    arguments = next((found[key] for key in _ARGUMENTS if found.get(key) is not None), "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    named = [key for key in _CALL_IDS if found.get(key)]
    more = {key: found[key] for key in (*named[1:], *_MORE) if found.get(key) is not None}
    return ToolCall(found["name"], arguments, found[named[0]] if named else ""), more


_NESTED = ("function", "functionCall", "toolUse")
_ARGUMENTS = ("arguments", "input", "args")
_CALL_IDS = ("call_id", "toolUseId", "id")
_MORE = (
    "status", "index", "caller", "namespace", "created_by", "parsed_arguments",  # OpenAI
    "cache_control", "signature",  # Anthropic
    "thought_signature", "thoughtSignature", "extra_content", "extras",  # Gemini, and LangChain's form of it
)  # fmt: skip
"""Fields of tool calls that are kept in the metadata of the message, under MORE_OF_CALLS."""
MORE_OF_CALLS = "tool_call_fields"


def _checked_metadata(text: str | Mapping[str, Any], of_calls: Sequence[Mapping[str, Any]]) -> str:
    """Return a JSON object as it stands, with what is to be kept of tool calls; InvalidArgument for anything else."""
    text = _checked_object(text)
    if not any(of_calls):
        return text
    held = json.dumps({MORE_OF_CALLS: [*of_calls]}, ensure_ascii=False)
    if text and MORE_OF_CALLS in json.loads(text):
        raise InvalidArgument(f"metadata has a key {MORE_OF_CALLS!r}, which is what tool calls fill", field="metadata")
    return _checked_object(f"{text.rstrip()[:-1]}, {held[1:]}" if text else held)


def _checked_object(text: str | Mapping[str, Any]) -> str:
    if isinstance(text, Mapping):
        try:
            text = json.dumps(dict(text), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"metadata cannot be written as JSON: {error}", field="metadata") from None
    text = check_text(text, "metadata", limit=limits.MAX_MESSAGE_METADATA_BYTES)
    if not text:
        return ""
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidArgument("metadata is not valid JSON", field="metadata") from None
    if not isinstance(values, dict):
        raise InvalidArgument("metadata must be a JSON object", field="metadata")
    check_written_out(text, "metadata")
    return text if values else ""


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON
