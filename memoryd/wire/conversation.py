"""Between the values of `conversation` and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from typing import Any, TypeVar

from memoryd.errors import InvalidArgument
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread, ToolCall, WorkingMemory
from memoryd.model.message_draft import MessageDraft
from memoryd.model.scope import Scope
from memoryd.model.talk import AppendedMessage, MessageHit
from memoryd.v1 import conversation_pb2, conversation_service_pb2, memory_pb2
from memoryd.wire.memory import TRUST, EnumCodes, set_time, time_from_pb

__all__ = [
    "appended_from_pb",
    "appended_to_pb",
    "draft_from_pb",
    "draft_to_pb",
    "message_from_pb",
    "message_hit_from_pb",
    "message_hit_to_pb",
    "message_to_pb",
    "session_from_pb",
    "session_to_pb",
    "states_from_pb",
    "states_to_pb",
    "thread_from_pb",
    "thread_to_pb",
    "working_memory_from_pb",
    "working_memory_to_pb",
]

T = TypeVar("T")
ROLE = EnumCodes(Role, conversation_pb2, "MESSAGE_ROLE", unset=Role.USER)
STATE = EnumCodes(SessionState, conversation_pb2, "SESSION_STATE")
_SAID = ("content", "name", "tool_call_id", "input_source", "metadata", "id")
_THREAD = (
    "id", "agent_id", "message_count", "turn_count", "last_seq", "session_id", "summary", "summary_author",
    "summary_by", "summary_seq", "view_seq", "working_memory", "working_memory_author",
)  # fmt: skip
_THREAD_TIMES = ("create_time", "update_time", "summary_time", "working_memory_time")
_SESSION = (
    "id", "agent_id", "thread_id", "end_reason", "message_count", "turn_count", "first_seq", "last_seq",
)  # fmt: skip
_SESSION_TIMES = ("start_time", "update_time", "end_time")


def _scope_to_pb(scope: Scope) -> memory_pb2.Scope:
    return memory_pb2.Scope(user_id=scope.user_id or "", chat_id=scope.chat_id or "")


def _scope_from_pb(message: Any) -> Scope:
    return Scope(message.scope.user_id or None, message.scope.chat_id or None)


def _calls_to_pb(calls: tuple[ToolCall, ...]) -> list[conversation_pb2.ToolCall]:
    return [conversation_pb2.ToolCall(name=call.name, arguments=call.arguments, id=call.id) for call in calls]


def _calls_from_pb(message: Any) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call.name, call.arguments, call.id) for call in message.tool_calls)


def draft_to_pb(draft: MessageDraft) -> conversation_pb2.Message:
    """Return a draft as message."""
    message = conversation_pb2.Message(
        role=ROLE.to_pb(draft.role),
        tool_calls=_calls_to_pb(draft.tool_calls),
        **{name: getattr(draft, name) for name in _SAID},
    )
    set_time(message, "create_time", draft.create_time)
    return message


def draft_from_pb(message: conversation_pb2.Message) -> MessageDraft:
    """Return a message as draft, checked; what only answers have is not read."""
    role = ROLE.known(message.role) if message.role else Role.USER
    if role is None:
        raise InvalidArgument(f"role is {message.role}, which is no role", field="role")
    return MessageDraft(
        role=role,
        tool_calls=_calls_from_pb(message),
        create_time=time_from_pb(message, "create_time"),
        **{name: getattr(message, name) for name in _SAID},
    )


def message_to_pb(message: Message) -> conversation_pb2.Message:
    """Return a message of a thread as message of the contract."""
    answer = conversation_pb2.Message(
        agent_id=message.agent_id,
        scope=_scope_to_pb(message.scope),
        thread_id=message.thread_id,
        seq=message.seq,
        session_id=message.session_id,
        role=ROLE.to_pb(message.role),
        tool_calls=_calls_to_pb(message.tool_calls),
        masked=message.masked,
        trust=TRUST.to_pb(message.trust),
        grant_id=message.grant_id,
        author=message.author,
        **{name: getattr(message, name) for name in _SAID},
    )
    set_time(answer, "create_time", message.create_time)
    return answer


def message_from_pb(message: conversation_pb2.Message) -> Message:
    """Return a message of the contract as message of a thread."""
    return Message(
        agent_id=message.agent_id,
        scope=_scope_from_pb(message),
        thread_id=message.thread_id,
        seq=message.seq,
        session_id=message.session_id,
        role=ROLE.from_pb(message.role),
        create_time=_time(message, "create_time"),
        tool_calls=_calls_from_pb(message),
        masked=message.masked,
        trust=TRUST.from_pb(message.trust),
        grant_id=message.grant_id,
        author=message.author,
        **{name: getattr(message, name) for name in _SAID},
    )


def _time(message: Any, name: str) -> Any:
    found = time_from_pb(message, name)
    if found is None:
        raise InvalidArgument(f"{name} is unset", field=name)
    return found


def message_hit_to_pb(hit: MessageHit) -> conversation_service_pb2.MessageHit:
    """Return a hit as message."""
    return conversation_service_pb2.MessageHit(
        message=message_to_pb(hit.message),
        score=hit.score,
        similarity=hit.similarity,
        lexical=hit.lexical,
        before=map(message_to_pb, hit.before),
        after=map(message_to_pb, hit.after),
        said_by_other=hit.said_by_other,
        same_ids=hit.same_ids,
    )


def message_hit_from_pb(hit: conversation_service_pb2.MessageHit) -> MessageHit:
    """Return a message as hit."""
    return MessageHit(
        message_from_pb(hit.message),
        hit.score,
        hit.similarity,
        hit.lexical,
        tuple(map(message_from_pb, hit.before)),
        tuple(map(message_from_pb, hit.after)),
        hit.said_by_other,
        tuple(hit.same_ids),
    )


def appended_to_pb(message: AppendedMessage) -> conversation_service_pb2.AppendedMessage:
    """Return what a message is called as message."""
    answer = conversation_service_pb2.AppendedMessage(
        id=message.id, seq=message.seq, masked=message.masked, existed=message.existed
    )
    set_time(answer, "create_time", message.create_time)
    return answer


def appended_from_pb(message: conversation_service_pb2.AppendedMessage) -> AppendedMessage:
    """Return a message as what a message is called."""
    return AppendedMessage(message.id, message.seq, _time(message, "create_time"), message.masked, message.existed)


def thread_to_pb(thread: Thread) -> conversation_pb2.Thread:
    """Return a thread as message."""
    answer = conversation_pb2.Thread(
        scope=_scope_to_pb(thread.scope),
        summary_trust=TRUST.to_pb(thread.summary_trust),
        working_memory_trust=TRUST.to_pb(thread.working_memory_trust),
        trust=TRUST.to_pb(thread.trust),
        **{name: getattr(thread, name) for name in _THREAD},
    )
    for name in _THREAD_TIMES:
        set_time(answer, name, getattr(thread, name))
    return answer


def thread_from_pb(message: conversation_pb2.Thread) -> Thread:
    """Return a message as thread."""
    return Thread(
        scope=_scope_from_pb(message),
        create_time=_time(message, "create_time"),
        update_time=_time(message, "update_time"),
        summary_time=time_from_pb(message, "summary_time"),
        working_memory_time=time_from_pb(message, "working_memory_time"),
        summary_trust=TRUST.from_pb(message.summary_trust),
        working_memory_trust=TRUST.from_pb(message.working_memory_trust),
        trust=TRUST.from_pb(message.trust),
        **{name: getattr(message, name) for name in _THREAD},
    )


def session_to_pb(session: Session) -> conversation_pb2.Session:
    """Return a session as message."""
    answer = conversation_pb2.Session(
        scope=_scope_to_pb(session.scope),
        state=STATE.to_pb(session.state),
        trust=TRUST.to_pb(session.trust),
        **{name: getattr(session, name) for name in _SESSION},
    )
    for name in _SESSION_TIMES:
        set_time(answer, name, getattr(session, name))
    return answer


def session_from_pb(message: conversation_pb2.Session) -> Session:
    """Return a message as session."""
    return Session(
        scope=_scope_from_pb(message),
        state=STATE.from_pb(message.state),
        start_time=_time(message, "start_time"),
        update_time=_time(message, "update_time"),
        end_time=time_from_pb(message, "end_time"),
        trust=TRUST.from_pb(message.trust),
        **{name: getattr(message, name) for name in _SESSION},
    )


def states_to_pb(states: frozenset[SessionState]) -> list[Any]:
    """Return states in the order of the contract."""
    return [STATE.to_pb(state) for state in SessionState if state in states]


def states_from_pb(codes: Any) -> frozenset[SessionState]:
    """Return the states of codes; InvalidArgument for one that is not known."""
    session_states = set()
    for n, code in enumerate(codes):
        state = STATE.known(code)
        if state is None:
            raise InvalidArgument(f"states[{n}] is {code}, which is no state of a session", field=f"states[{n}]")
        session_states.add(state)
    return frozenset(session_states)


def working_memory_to_pb(working_memory: WorkingMemory) -> conversation_pb2.WorkingMemory:
    """Return a working memory as message."""
    answer = conversation_pb2.WorkingMemory(
        text=working_memory.text, trust=TRUST.to_pb(working_memory.trust), author=working_memory.author
    )
    set_time(answer, "update_time", working_memory.update_time)
    return answer


def working_memory_from_pb(message: conversation_pb2.WorkingMemory) -> WorkingMemory:
    """Return a message as working memory."""
    time = time_from_pb(message, "update_time")
    return WorkingMemory(message.text, time, TRUST.from_pb(message.trust), author=message.author)
