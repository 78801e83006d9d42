"""Threads, sessions and messages, and the drafts that become messages. Times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.grant import GrantText
from memoryd.model.memory import Kind, Memory, ShownMemory, Source
from memoryd.model.open_enum import OpenEnum
from memoryd.model.recalled_text import without_recalled
from memoryd.model.scope import Owner, Scope
from memoryd.model.short_repr import ShortRepr
from memoryd.model.trust import Trust
from memoryd.model.validation import check_id, check_text, check_written_out

__all__ = [
    "SOURCES",
    "FirstSaid",
    "Message",
    "Role",
    "Session",
    "SessionState",
    "Thread",
    "ToolCall",
    "WorkingMemory",
    "message_key",
    "place_of",
    "shown_id",
    "source_label",
    "tool_label",
    "under_own_id",
]

_OWN = {"internal": True}  # a field that the daemon keeps for itself
CUT = "…"
MOST_IN_PLACE = 256  # messages of a thread that an index forgets one by one


class Role(OpenEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class SessionState(OpenEnum):
    """Where a session stands."""

    OPEN = "open"
    """It goes on."""
    PENDING = "pending"
    """It has ended, and nothing was learnt from it so far."""
    DONE = "done"
    """It was learnt from."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool that the assistant asks for."""

    name: str
    arguments: str = ""
    """As the model wrote them, mostly JSON."""
    id: str = ""

    def checked(self, name: str) -> ToolCall:
        """Return it checked; InvalidArgument or LimitExceeded names the part below `name`."""
        called = check_id(self.name, f"{name}.name")
        if not called:
            raise InvalidArgument(f"{name}.name is empty; say which tool is called", field=f"{name}.name")
        arguments = check_text(self.arguments, f"{name}.arguments", limit=limits.MAX_TOOL_ARGUMENT_BYTES)
        check_written_out(arguments, f"{name}.arguments")
        return ToolCall(called, arguments, check_id(self.id, f"{name}.id"))


SOURCES = frozenset({
    "web", "file", "document", "email", "mail", "webhook", "cron", "heartbeat", "wakeup", "rss", "log", "voice",
    "keyboard", "cli", "api", "app", "chat", "sms", "phone", "telegram", "whatsapp", "signal", "slack", "discord",
    "matrix", "teams", "irc", "mcp", "upload", "clipboard", "calendar", "image", "audio", "video",
})  # fmt: skip
"""What an input source may be called to stand as a label; any other name stands in quotation marks."""
_BRACKETS = str.maketrans('[]"', "()'")


def source_label(name: str) -> str:
    """Return the label of a message's input source, with a space after it: `[web] `, `["the CEO"] `; "" for none."""
    if not name:
        return ""
    return f"[{name}] " if name.lower() in SOURCES else f'["{name.translate(_BRACKETS)}"] '


def tool_label(name: str) -> str:
    """Return the label of a tool, with a space after it: `[tool:search] `; no name of it ends the label."""
    return f"[tool:{name.translate(_BRACKETS)}] " if name else "[tool] "


def message_key(thread_id: str, seq: int) -> str:
    """Return what addresses a message in the index of its scope: no id holds a control character."""
    return f"{thread_id}\x1f{seq}"


def under_own_id(memory: ShownMemory) -> ShownMemory:
    """Return a message that a search has found, as memory, under the message's own id."""
    return replace(memory, id=shown_id(memory))


def shown_id(memory: Memory) -> str:
    """Return the id of a memory as others see it: of a message its own, and not its place."""
    return memory.source.message_ids[0] if memory.key == memory.id else memory.id


def place_of(key: str) -> tuple[str, int]:
    """Return the thread and the seq of a message key."""
    thread_id, _, seq = key.rpartition("\x1f")
    return thread_id, int(seq)


@dataclass(frozen=True, slots=True)
class FirstSaid:
    """The first message of a thread past some number, of all threads that have one."""

    owner: Owner
    thread_id: str
    seq: int
    create_time: datetime
    last_number: int
    """The number of the last message that was looked at in the thread."""
    count: int
    """How many were."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Message(ShortRepr):
    """One utterance of a thread; fields as in `conversation.proto`."""

    id: str
    agent_id: str
    scope: Scope
    thread_id: str
    seq: int
    """Its place in the thread, from 1 on."""
    session_id: str
    role: Role
    content: str
    create_time: datetime
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    input_source: str = ""
    metadata: str = ""
    """A JSON object, as it was given; empty: none."""
    masked: bool = False
    """Whether a credential was taken out before it was stored."""
    trust: Trust = Trust.HOST
    grant_id: str = ""
    author: str = ""
    """The user in whose name it was appended."""

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return Owner(self.agent_id, self.scope)

    @property
    def text_bytes(self) -> int:
        """Bytes of its texts, as quotas count them."""
        texts = [self.content, self.metadata, self.name, self.input_source]
        for call in self.tool_calls:
            texts += (call.name, call.arguments)
        return sum(len(text.encode()) for text in texts)

    @property
    def speaker(self) -> str:
        """Who says it: the name, else the role; empty of a user without a name."""
        return self.name or ("" if self.role is Role.USER else self.role.value)

    @property
    def shown(self) -> str:
        """What is said, with `[source]` and `[tool:name]` before it, as it is searched and put into prompts."""
        before = source_label(self.input_source)
        if self.role is Role.TOOL:
            before = f"{tool_label(self.name)}{before}"
        calls = "".join(f"\n{tool_label(call.name)}{call.arguments}".rstrip() for call in self.tool_calls)
        return f"{before}{self.content}{calls}".strip()

    @property
    def said(self) -> str:
        """What is shown, without what was recalled into it: a search would find it again as what someone said."""
        return without_recalled(self.shown)

    @property
    def words(self) -> str:
        """What is searched: what is said, without the names of sources and tools, and without what was recalled."""
        return without_recalled("\n".join((self.content, *(call.arguments for call in self.tool_calls)))).strip()

    @property
    def voice(self) -> str:
        """Who is searched for as its speaker: no one of what a tool answers."""
        return "" if self.role is Role.TOOL else self.speaker

    def as_memory(self, *, most: int = limits.MAX_CONTENT_BYTES) -> Memory:
        """
        Return it as what an index holds: a memory of kind EPISODE, of a long one the first `most` characters.

        Its id is its place, as ids that came with messages are unique within a thread alone; see `under_own_id`.
        """
        text = self.said
        return Memory(
            id=message_key(self.thread_id, self.seq),
            agent_id=self.agent_id,
            scope=self.scope,
            content=text if len(text) <= most else text[:most] + CUT,
            create_time=self.create_time,
            event_time=self.create_time,
            kind=Kind.EPISODE,
            category=self.role.value,
            key=message_key(self.thread_id, self.seq),
            source=Source(self.speaker, self.input_source, self.thread_id, self.session_id, (self.id,)),
            trust=self.trust,
            grant_id=self.grant_id,
            author=self.author,
        )


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Thread(ShortRepr):
    """One conversation of one scope; fields as in `conversation.proto`."""

    id: str
    """The caller's own key, unique within agent and scope."""
    agent_id: str
    scope: Scope
    create_time: datetime
    update_time: datetime
    message_count: int = 0
    turn_count: int = 0
    """Messages of users: each begins a turn."""
    last_seq: int = 0
    session_id: str = ""
    """The session that is open; empty: none."""
    summary: str = ""
    summary_seq: int = 0
    """The last message that the summary covers."""
    summary_time: datetime | None = None
    summary_by: str = ""
    """Who wrote it: a model, "rules" for an extract; empty: it was set by call."""
    view_seq: int = 0
    """Messages up to here are left out of prompts: the thread was compacted."""
    working_memory: str = ""
    working_memory_time: datetime | None = None
    trust: Trust = Trust.HOST
    """The highest of its messages: with less it is not erased."""
    summary_trust: Trust = Trust.HOST
    working_memory_trust: Trust = Trust.HOST
    summary_author: str = ""
    """Whose call set the summary of a chat's thread."""
    working_memory_author: str = ""
    """Whose call set the working memory of a chat's thread."""
    summary_grant_id: str = field(default="", metadata=_OWN)
    """Through which grant its summary was set, to whose quota it counts."""
    working_memory_grant_id: str = field(default="", metadata=_OWN)
    revision: int = field(default=0, metadata=_OWN)
    """How often it was changed: a change says on which one it was decided."""

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return Owner(self.agent_id, self.scope)

    @property
    def summed_up_seq(self) -> int:
        """Up to which message a summary counts: what lower trust set or cleared does not, where higher trust spoke."""
        return 0 if self.trust.outranks(self.summary_trust) else self.summary_seq

    @property
    def texts(self) -> tuple[GrantText, ...]:
        """What of it counts to the quotas of grants."""
        each = (
            (self.summary_grant_id, self.summary_time, self.summary),
            (self.working_memory_grant_id, self.working_memory_time, self.working_memory),
        )
        return tuple(
            GrantText(one, time.date(), len(text.encode())) for one, time, text in each if one and time and text
        )

    @property
    def is_long(self) -> bool:
        """Whether it has so many messages that an index is rebuilt without them rather than changed in place."""
        return self.last_seq > MOST_IN_PLACE

    @property
    def places(self) -> Iterator[Message]:
        """Yield a message without words for every place: what an index forgets of a thread that is erased."""
        for seq in range(1, self.last_seq + 1):
            yield Message(
                id="",
                agent_id=self.agent_id,
                scope=self.scope,
                thread_id=self.id,
                seq=seq,
                session_id="",
                role=Role.USER,
                content="",
                create_time=self.create_time,
            )

    @property
    def highest_trust(self) -> Trust:
        """The highest trust of its messages, its summary and its working memory."""
        trusts = [self.trust]
        trusts += [self.summary_trust] if self.summary else []
        trusts += [self.working_memory_trust] if self.working_memory else []
        return Trust.highest(*trusts)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Session(ShortRepr):
    """One bounded run of a thread, from wake to sleep."""

    id: str
    """The caller's own key, unique within its thread, or one that the daemon made."""
    agent_id: str
    scope: Scope
    thread_id: str
    state: SessionState
    start_time: datetime
    update_time: datetime
    end_time: datetime | None = None
    end_reason: str = ""
    """Why it ended: "ended", "next" or "idle"; empty while it is open."""
    message_count: int = 0
    turn_count: int = 0
    first_seq: int = 0
    last_seq: int = 0
    trust: Trust = Trust.HOST
    """That of the one who began it: with less it is not ended."""
    lease_by: str = field(default="", metadata=_OWN)
    """The worker that learns from it; empty: no one does."""
    lease_time: datetime | None = field(default=None, metadata=_OWN)
    """Until when no one else does."""
    messages_before: int = field(default=0, metadata=_OWN)
    """How many messages the thread had when it was opened."""
    turns_before: int = field(default=0, metadata=_OWN)

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return Owner(self.agent_id, self.scope)

    def without(self, gone: Sequence[Message], thread: Thread) -> Session:
        """
        Return it as it counts once messages of its thread are erased; `thread` is as it was before.

        An open session counts from `messages_before` on, so what was there before it was opened is taken off that.
        """
        is_open = self.state is SessionState.OPEN and thread.session_id == self.id
        earlier = [message for message in gone if message.session_id != self.id or message.seq <= self.last_seq]
        counted = [
            message
            for message in gone
            if message.session_id == self.id and (not is_open or message.seq <= self.last_seq)
        ]
        changed = replace(
            self,
            message_count=self.message_count - len(counted),
            turn_count=self.turn_count - sum(message.role is Role.USER for message in counted),
        )
        if not is_open:
            return changed
        return replace(
            changed,
            messages_before=self.messages_before - len(earlier),
            turns_before=self.turns_before - sum(message.role is Role.USER for message in earlier),
        )


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """The small text that an agent rewrites as it goes: one for each user, chat and thread."""

    text: str = ""
    update_time: datetime | None = None
    trust: Trust = Trust.HOST
    grant_id: str = field(default="", metadata=_OWN)
    """Through which grant it was set, to whose quota it counts."""
    author: str = ""
    """Whose call set it, where it is a chat's; empty: not known, or it is the user's own."""

    @property
    def texts(self) -> tuple[GrantText, ...]:
        """What of it counts to the quotas of grants."""
        if not self.grant_id or self.update_time is None or not self.text:
            return ()
        return (GrantText(self.grant_id, self.update_time.date(), len(self.text.encode())),)
