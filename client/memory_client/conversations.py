# Generated from aio_conversations.py by `make client`: change that file instead.
"""The plain client's methods for conversations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Collection, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from memory_client.endpoint import Identity
from memory_client.late import Late
from memoryd.errors import (
    Conflict,
    InvalidArgument,
    LimitExceeded,
    MemorydError,
    NotFound,
    PermissionDenied,
    ThreadNotFound,
    TrustTooLow,
    Unauthenticated,
)
from memoryd.model.context import BuiltContext

if TYPE_CHECKING:
    from memory_client import calls, conversation_calls
    from memory_client.calls import Call
    from memoryd.model.conversation import Message, Session, SessionState, Thread, WorkingMemory
    from memoryd.model.message_draft import MessageDraft
    from memoryd.model.talk import (
        Appended,
        CompactedThread,
        ErasedMessages,
        ErasedThread,
        FoundMessages,
        MessagePage,
        MessageSearch,
        SessionPage,
        StartedSession,
        Summary,
        ThreadPage,
    )
else:
    calls = Late("memory_client.calls")
    conversation_calls = Late("memory_client.conversation_calls")

__all__ = ["Conversation", "Conversations"]

T = TypeVar("T")
DECLINED = (Conflict, InvalidArgument, LimitExceeded, NotFound, PermissionDenied, Unauthenticated)
"""What says that nothing was stored."""
RETRY_S = 60.0  # so long the same words after a call that failed are a retry of it
MOST_FAILED = 15  # calls that failed and are remembered


class Conversations:
    """
    One method an RPC of ConversationService, and BuildContext.

    A thread is named by the caller's own key. It is a thread of the user; with `shared`, of the chat.
    """

    identity: Identity

    def _send(self, call: Call[T]) -> T:
        raise NotImplementedError

    def conversation(self, thread_id: str, *, shared: bool = False, session_id: str = "") -> Conversation:
        """Return a conversation, which keeps its thread and session from call to call; nothing is sent yet."""
        return Conversation(self, thread_id, shared=shared, session_id=session_id)

    def context(  # noqa: PLR0913  one argument for each field of the contract
        self,
        prompt: str,
        *,
        max_tokens: int = 0,
        max_memories: int = 0,
        min_score: float | None = None,
        thread_id: str = "",
        shared: bool = False,
        max_recent_messages: int = 0,
        max_recalled_messages: int = 0,
        exclude_thread_ids: Sequence[str] = (),
        exclude_session_ids: Sequence[str] = (),
        sections: Sequence[str] = (),
        tokenizer: str = "",
    ) -> BuiltContext:
        """
        Return the block of text for a prompt, and with a thread also what belongs to that conversation.

        0 and None mean the daemon's default; `sections` chooses and orders its parts.
        """
        call = calls.context(
            self.identity,
            prompt=prompt,
            max_tokens=max_tokens,
            max_memories=max_memories,
            min_score=min_score,
            thread_id=thread_id,
            shared=shared,
            max_recent_messages=max_recent_messages,
            max_recalled_messages=max_recalled_messages,
            exclude_thread_ids=exclude_thread_ids,
            exclude_session_ids=exclude_session_ids,
            sections=sections,
            tokenizer=tokenizer,
        )
        return self._send(call)

    def append(
        self,
        thread_id: str,
        messages: MessageDraft | Sequence[MessageDraft],
        *,
        shared: bool = False,
        session_id: str = "",
        request_id: str = "",
        skip_existing: bool = False,
    ) -> Appended:
        """
        Append up to 100 messages in order, all or none; a request_id is made where none is given.

        With skip_existing, those whose id the thread has with the same content are answered as they are.
        """
        drafts = conversation_calls.messages_of(messages)
        key = (thread_id, shared)
        call = conversation_calls.append(
            self.identity, key, drafts, session_id, request_id, skip_existing=skip_existing
        )
        return self._send(call)

    def messages(  # noqa: PLR0913  one argument for each field of the contract
        self,
        thread_id: str,
        *,
        shared: bool = False,
        page_size: int = 0,
        page_token: str = "",
        max_tokens: int = 0,
        session_id: str = "",
        in_view: bool = False,
        message_ids: Sequence[str] = (),
        whole_turns: bool = False,
    ) -> MessagePage:
        """
        Return the last messages of a thread in order, or with a page_token those before them; 0 means 10.

        With message_ids only those, such as `memory.source.message_ids`. With whole_turns no tool's result stands
        without its call, and one message that is larger than max_tokens is cut, as the APIs of models need it.
        """
        call = conversation_calls.messages(
            self.identity,
            (thread_id, shared),
            page_size=page_size,
            page_token=page_token,
            max_tokens=max_tokens,
            session_id=session_id,
            in_view=in_view,
            message_ids=message_ids,
            whole_turns=whole_turns,
        )
        return self._send(call)

    def all_messages(
        self, thread_id: str, *, shared: bool = False, page_size: int = 100, session_id: str = ""
    ) -> Iterator[Message]:
        """Yield every message of a thread, the last one first, fetching page after page."""
        token = ""
        while True:
            page = self.messages(
                thread_id, shared=shared, page_size=page_size, page_token=token, session_id=session_id
            )
            for message in reversed(page.messages):
                yield message
            token = page.next_page_token
            if not token:
                return

    def thread(self, thread_id: str, *, shared: bool = False) -> Thread:
        """Return a thread."""
        return self._send(conversation_calls.thread(self.identity, (thread_id, shared)))

    def threads(self, *, page_size: int = 0, page_token: str = "", prefix: str = "") -> ThreadPage:
        """Return one page of the threads that are visible, the latest first; page_size 0 means 20."""
        call = conversation_calls.threads(self.identity, page_size=page_size, page_token=page_token, prefix=prefix)
        return self._send(call)

    def all_threads(self, *, page_size: int = 100, prefix: str = "") -> Iterator[Thread]:
        """Yield every thread that is visible, the latest first, fetching page after page."""
        token = ""
        while True:
            page = self.threads(page_size=page_size, page_token=token, prefix=prefix)
            for thread in page.threads:
                yield thread
            token = page.next_page_token
            if not token:
                return

    def delete_thread(
        self, thread_id: str, *, shared: bool = False, with_memories: bool = False, dry_run: bool = False
    ) -> ErasedThread:
        """Erase a thread for good, with_memories also what was learnt from it; with dry_run only tell what goes."""
        call = conversation_calls.delete_thread(
            self.identity, (thread_id, shared), with_memories=with_memories, dry_run=dry_run
        )
        return self._send(call)

    def delete_messages(
        self,
        thread_id: str,
        message_ids: Sequence[str] = (),
        *,
        after_seq: int | None = None,
        shared: bool = False,
        with_memories: bool = False,
        dry_run: bool = False,
    ) -> ErasedMessages:
        """
        Erase messages of a thread for good: those of some ids, or all after a place; with dry_run only tell what goes.

        What was learnt from them is named; with_memories it goes too.
        """
        call = conversation_calls.delete_messages(
            self.identity,
            (thread_id, shared),
            message_ids,
            after_seq=after_seq,
            with_memories=with_memories,
            dry_run=dry_run,
        )
        return self._send(call)

    def search_messages(self, asked: MessageSearch | str) -> FoundMessages:
        """Return the messages that answer a query, or some words, each with those around it."""
        return self._send(conversation_calls.search_messages(self.identity, asked))

    def set_summary(self, thread_id: str, summary: str, *, shared: bool = False, up_to_seq: int = 0) -> Thread:
        """Set what sums up a thread, up to a message."""
        call = conversation_calls.set_summary(self.identity, (thread_id, shared), summary, up_to_seq)
        return self._send(call)

    def summary(self, thread_id: str, *, shared: bool = False) -> Summary:
        """Return what sums up a thread; an empty one where nothing does."""
        return self._send(conversation_calls.summary(self.identity, (thread_id, shared)))

    def compact_thread(
        self, thread_id: str, *, shared: bool = False, retain_recent: int = 0, emergency: bool = False
    ) -> CompactedThread:
        """Let the older messages of a thread leave its prompts; nothing is deleted."""
        call = conversation_calls.compact_thread(self.identity, (thread_id, shared), retain_recent, emergency=emergency)
        return self._send(call)

    def set_working_memory(self, text: str, *, thread_id: str = "", shared: bool = False) -> WorkingMemory:
        """Replace the working memory of a thread, or without one that of the user (with shared: of the chat)."""
        return self._send(conversation_calls.set_working_memory(self.identity, (thread_id, shared), text))

    def working_memory(self, *, thread_id: str = "", shared: bool = False) -> WorkingMemory:
        """Return the working memory of a thread, or without one that of the user (with shared: of the chat)."""
        return self._send(conversation_calls.working_memory(self.identity, (thread_id, shared)))

    def start_session(self, thread_id: str, session_id: str = "", *, shared: bool = False) -> StartedSession:
        """Begin a session of a thread; the one that is open ends."""
        return self._send(conversation_calls.start_session(self.identity, (thread_id, shared), session_id))

    def end_session(self, thread_id: str, session_id: str = "", *, shared: bool = False) -> Session:
        """End a session, or the one that is open."""
        return self._send(conversation_calls.end_session(self.identity, (thread_id, shared), session_id))

    def sessions(
        self,
        thread_id: str = "",
        *,
        shared: bool = False,
        states: Collection[SessionState] = (),
        page_size: int = 0,
        page_token: str = "",
    ) -> SessionPage:
        """Return one page of the sessions of a thread, or of all that are visible, the latest first."""
        call = conversation_calls.sessions(
            self.identity, (thread_id, shared), states, page_size=page_size, page_token=page_token
        )
        return self._send(call)

    def all_sessions(
        self,
        thread_id: str = "",
        *,
        shared: bool = False,
        states: Collection[SessionState] = (),
        page_size: int = 100,
    ) -> Iterator[Session]:
        """Yield every session, the latest first, fetching page after page."""
        token = ""
        while True:
            page = self.sessions(thread_id, shared=shared, states=states, page_size=page_size, page_token=token)
            for session in page.sessions:
                yield session
            token = page.next_page_token
            if not token:
                return


class Conversation:
    """
    One thread as an agent's loop uses it.

    `session_id` is the session of the last message; a session that was given at the start is named with every message.
    """

    def __init__(
        self, client: Conversations, thread_id: str, *, shared: bool = False, session_id: str = ""
    ) -> None:
        """Name the thread and, if it is known, the session."""
        self.thread_id = thread_id
        self.session_id = session_id
        self._client = client
        self._shared = shared
        self._named = session_id
        self._failed: dict[tuple[MessageDraft, ...], tuple[str, float]] = {}
        """What was said of late and may be stored or not: under which request id, and until when that is kept."""

    def __enter__(self) -> Self:
        """Begin a block at whose end the session ends."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """End the session of the last message; none that is another's, or of a thread that is gone."""
        if not self.session_id:
            return
        try:
            self.end()
        except (TrustTooLow, ThreadNotFound):
            return
        except MemorydError:
            if error is None:  # else the error of the block is told
                raise

    def say(self, *messages: MessageDraft, request_id: str = "") -> Appended:
        """
        Append messages in order, all or none.

        Said again within a minute of a call that failed, the same messages count once: they go under its request id.
        """
        messages = tuple(conversation_calls.messages_of(messages))
        known, until = self._failed.pop(messages, ("", 0.0))
        if not request_id:
            request_id = known if time.monotonic() < until else calls.request_id_of("")
        try:
            done = self._client.append(
                self.thread_id, messages, shared=self._shared, session_id=self._named, request_id=request_id
            )
        except DECLINED:
            raise  # it is not stored
        except BaseException:  # it may be stored: also where the caller was cancelled
            self._failed[messages] = (request_id, time.monotonic() + RETRY_S)
            for older in list(self._failed)[:-MOST_FAILED]:
                del self._failed[older]
            raise
        self.session_id = done.session_id or self.session_id
        return done

    def user(self, content: str, **more: Any) -> Appended:
        """Append what the user says; further fields as of MessageDraft."""
        return self.say(conversation_calls.draft("user", content, more))

    def assistant(self, content: str, **more: Any) -> Appended:
        """Append what the agent says; further fields as of MessageDraft, such as tool_calls."""
        return self.say(conversation_calls.draft("assistant", content, more))

    def tool(self, name: str, content: str, **more: Any) -> Appended:
        """Append what a tool answers."""
        return self.say(conversation_calls.draft("tool", content, {"name": name, **more}))

    def recent(self, *, page_size: int = 0, max_tokens: int = 0) -> list[Message]:
        """Return the last messages that have not left the prompts, in whole turns; none of a new thread."""
        try:
            page = self._client.messages(
                self.thread_id,
                shared=self._shared,
                page_size=page_size,
                max_tokens=max_tokens,
                in_view=True,
                whole_turns=True,
            )
        except ThreadNotFound:
            return []
        return list(page.messages)

    def search(self, text: str, **more: Any) -> FoundMessages:
        """Return the messages of this thread that answer a query; further arguments as of MessageSearch."""
        asked = conversation_calls.message_search(text, {"thread_id": self.thread_id, "shared": self._shared, **more})
        return self._client.search_messages(asked)

    def context(self, prompt: str, **more: Any) -> BuiltContext:
        """Return the block of text for a prompt in this thread; further arguments as of the client's `context`."""
        return self._client.context(prompt, thread_id=self.thread_id, shared=self._shared, **more)

    def end(self) -> Session:
        """End the session of the last message."""
        return self._client.end_session(self.thread_id, self.session_id, shared=self._shared)
