"""The conversations of a client without a wire: the use cases, called as the service calls them."""

from __future__ import annotations

from memoryd.domain.conversation import erase, messages, search, threads, waking
from memoryd.domain.conversation.append import append
from memoryd.domain.conversation.threads import ThreadKey
from memoryd.model.message_draft import MessageDraft


class LocalConversations:
    """Methods as of `memory_client.AsyncConversations`."""

    async def append(self, thread_id, messages, *, shared=False, session_id="", request_id="", skip_existing=False):
        drafts = [messages] if isinstance(messages, MessageDraft) else messages
        return await append(
            ThreadKey(thread_id, shared), drafts, self._caller, self.ports, now=self.clock(),
            session_id=session_id, request_id=request_id, skip_existing=skip_existing,
        )  # fmt: skip

    async def messages(self, thread_id, *, shared=False, whole_turns=False, **more):
        key = ThreadKey(thread_id, shared)
        return await messages.list_messages(key, self._caller, self.ports, whole=whole_turns, **more)

    async def thread(self, thread_id, *, shared=False):
        return await threads.get_thread(ThreadKey(thread_id, shared), self._caller, self.ports)

    async def threads(self, **more):
        return await threads.list_threads(self._caller, self.ports, **more)

    async def delete_thread(self, thread_id, *, shared=False, with_memories=False, dry_run=False):
        return await erase.erase_thread(
            ThreadKey(thread_id, shared), self._caller, self.ports, now=self.clock(),
            with_memories=with_memories, dry_run=dry_run,
        )  # fmt: skip

    async def delete_messages(self, thread_id, message_ids=(), *, shared=False, **more):
        key = ThreadKey(thread_id, shared)
        return await erase.erase_messages(
            key, self._caller, self.ports, now=self.clock(), message_ids=message_ids, **more
        )

    async def search_messages(self, asked):
        return await search.search_messages(asked, self._caller, self.ports, now=self.clock())

    async def set_summary(self, thread_id, summary, *, shared=False, up_to_seq=0):
        key = ThreadKey(thread_id, shared)
        return await threads.set_summary(key, summary, up_to_seq, self._caller, self.ports, now=self.clock())

    async def summary(self, thread_id, *, shared=False):
        return await threads.get_summary(ThreadKey(thread_id, shared), self._caller, self.ports.store)

    async def compact_thread(self, thread_id, *, shared=False, retain_recent=0, emergency=False):
        key = ThreadKey(thread_id, shared)
        return await threads.compact_thread(
            key, retain_recent, self._caller, self.ports, emergency=emergency, now=self.clock()
        )

    async def set_working_memory(self, text, *, thread_id="", shared=False):
        key = ThreadKey(thread_id, shared) if thread_id else None
        return await threads.set_working_memory(key, text, self._caller, self.ports, shared=shared, now=self.clock())

    async def working_memory(self, *, thread_id="", shared=False):
        key = ThreadKey(thread_id, shared) if thread_id else None
        return await threads.get_working_memory(key, self._caller, self.ports.store, shared=shared)

    async def start_session(self, thread_id, session_id="", *, shared=False):
        key = ThreadKey(thread_id, shared)
        return await waking.start_session(key, session_id, self._caller, self.ports, now=self.clock())

    async def end_session(self, thread_id, session_id="", *, shared=False):
        key = ThreadKey(thread_id, shared)
        return await waking.end_session(key, session_id, self._caller, self.ports, now=self.clock())

    async def sessions(self, thread_id="", *, shared=False, states=(), **more):
        key = ThreadKey(thread_id, shared) if thread_id else None
        return await threads.list_sessions(self._caller, self.ports, key=key, states=frozenset(states), **more)
