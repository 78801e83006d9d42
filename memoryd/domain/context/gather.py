"""What each section of a context could say: the most important first, before it is known what fits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from memoryd.domain.context.excerpt import excerpt, words_of_prompt
from memoryd.domain.conversation.threads import ThreadKey, working_memory_of
from memoryd.domain.policy import Policy
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.answers_read import Answers, near_ids, read_answers
from memoryd.domain.retrieval.newer import newer_of
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.retrieval.profile import profile_of
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.retrieval.recall import find
from memoryd.domain.scopes import EpisodeScopes, Scopes
from memoryd.domain.shares import first_places, for_higher_trust
from memoryd.domain.subjects import known_people, people_of
from memoryd.entities.directory import Directory
from memoryd.entities.finders import find_entities
from memoryd.entities.known_names import KnownNames
from memoryd.entities.lookup import meant_by
from memoryd.errors import Unavailable
from memoryd.index.newest import newest
from memoryd.knowledge.extraction.sentences import PLAYED, ends_play, not_stated
from memoryd.knowledge.grammar.sentences import is_filler
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.context import ContextRequest
from memoryd.model.conversation import Role, Thread, WorkingMemory, message_key, place_of
from memoryd.model.memory import UNKNOWN, Kind, Memory, ShownMemory
from memoryd.model.query import STATEMENTS, Filter, Query
from memoryd.model.recalled_text import without_recalled
from memoryd.model.results import Hit, Leg, SearchResult
from memoryd.model.scope import Owner, Scope
from memoryd.turns import in_turns, let_others

__all__ = ["Gatherer", "Recalled"]

MOST_PEOPLE = 20
MEMORY_LINES = 2  # a memory is shown as far as so many messages
REFLECTIONS = Filter(kinds=frozenset({Kind.REFLECTION}))
_WORD = re.compile(r"\w+")
PAGE, MOST_LEFT_OUT = 100, 1000  # messages that are looked at together, and beyond the recent ones
MOST_READ = 2000  # characters in which names are looked for: of a long prompt the first and the last
CLOSEST_INSIGHTS = 10  # the latest insight is relevant where it is among so many
Place = tuple[Owner, str, int]
"""Of a message: whose, in which thread, and where there."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that was found, or stands next to one: in which group of a thread it is shown, best thread first."""

    memory: Memory
    group: int
    beside: tuple[str, str] | None = None
    """Thread and id of the message next to which it stands; None: it was found."""
    remark: str = ""
    """Why it states nothing: role play, a text to work on …"""


def _remarks(memories: Mapping[Place, Memory]) -> dict[Place, str]:
    """
    Return why some messages state nothing.

    What the assistant answers to such a one states nothing either, and a role play goes on in what the same one says
    after it. No one's role play makes one of what others say, or of what is of higher trust.
    """
    remarks: dict[Place, str] = {}
    begun: dict[Place, Memory] = {}
    """Who says it, where it goes on."""
    for owner, thread_id, seq in sorted(memories, key=lambda place: (place[1], place[2])):
        place, memory = (owner, thread_id, seq), memories[owner, thread_id, seq]
        before, by = remarks.get((owner, thread_id, seq - 1), ""), begun.get((owner, thread_id, seq - 1))
        text = without_recalled(memory.content)
        goes_on = (
            by is not None
            and memory.author == by.author
            and not memory.trust.outranks(by.trust)
            and (memory.category == Role.ASSISTANT.value or (before == PLAYED and not ends_play(text)))
        )
        own = not_stated(text)
        if before and goes_on and by is not None:
            remarks[place], begun[place] = before, by
        elif own:
            remarks[place], begun[place] = own, memory
    return remarks


class Gatherer:
    """The searches and reads behind one context. The prompt is embedded once for all of them."""

    def __init__(
        self,
        request: ContextRequest,
        caller: Caller,
        ports: Ports,
        embedded: Prompt | None,
        now: datetime,
        *,
        most_characters: int,
    ) -> None:
        """
        Without `embedded` there is no prompt, and nothing is searched.

        Of a message at most so many characters are shown, of a memory MEMORY_LINES times as many.
        """
        self._most_characters = most_characters
        self.legs: dict[Leg, None] = {}
        self.left_out_ids: tuple[str, ...] = ()
        self.newer: dict[str, ShownMemory] = {}
        """By the id of a relevant memory: the newer statement that contests it."""
        self.embedding_s = 0.0
        self._request, self._caller, self._ports, self._embedded, self._now = request, caller, ports, embedded, now
        self._policy: Policy = ports.policy.of(caller.agent_id)
        self._scopes, self._episodes = Scopes(ports), EpisodeScopes(ports)
        self._near: set[str] = set()
        self._names: frozenset[tuple[Owner, str]] | None = None
        self._owner: Owner | None = None
        self._thread: Thread | None = None
        self._working: list[tuple[str, WorkingMemory]] = []

    async def read_thread(self) -> None:
        """Read the thread, if one is named, is there and is not left out."""
        request = self._request
        if not request.thread_id:
            return
        key = ThreadKey(request.thread_id, request.shared)
        self._owner = key.owner(self._caller)
        if request.thread_id not in request.exclude_thread_ids:
            self._thread = await self._ports.store.conversations.thread(self._owner, key.thread_id)

    async def _find(self, wanted: Filter, limit: int, scopes: Scopes, *, kept: int | None = None) -> Sequence[Hit]:
        """Return what answers the prompt, above the floor; a prompt that says nothing is answered by nothing."""
        if self._embedded is None or not self._embedded.asks:
            return ()
        query = Query(
            text=self._embedded.text,
            limit=min(limit, limits.MAX_SEARCH_LIMIT),
            filter=wanted,
            min_score=self._request.min_score,
            strict=True,
        )
        try:
            result: SearchResult = await find(query, self._embedded, self._caller, scopes, now=self._now, kept=kept)
        except Unavailable:  # a scope too large for memory, and no vectors: there is nothing to search it by
            self.legs |= {Leg.VECTOR: None, Leg.KEYWORD: None}
            return ()
        self.legs |= dict.fromkeys(result.unavailable_legs)
        self.embedding_s = self.embedding_s or result.embedding_s
        await let_others()
        return result.hits

    async def memories(self, more: int) -> list[ShownMemory]:
        """Return what is relevant, best first; `more` than are wanted, where some may be left out."""
        memories, answers, prompt = await self._relevant(more), Answers(), self._embedded
        if prompt is not None and self._request.min_score is None and self._policy.floor:
            near, limit = self._near, self.most_memories
            answers = await read_answers(prompt, memories, near, self._caller, self._ports, limit=limit)
        self.legs |= dict.fromkeys(() if answers.is_whole else (Leg.READER,))
        self.left_out_ids = tuple(memory.id for memory in memories if memory.id in answers.hidden)
        return [self._excerpted(memory) for memory in memories if memory.id not in answers.hidden]

    async def _relevant(self, more: int) -> list[ShownMemory]:
        wanted, excluded = self.most_memories, self._request.exclude_session_ids
        memories = await self._memories(wanted)
        if any(memory.source.session_id in excluded for memory in memories):
            memories = await self._memories(limits.MAX_SEARCH_LIMIT)
            left = [memory for memory in memories if memory.source.session_id not in excluded]
            return first_places(left, wanted + more, lambda memory: memory.trust.is_sandbox)
        if more and any(m.source.message_ids and m.source.thread_id == self._request.thread_id for m in memories):
            return await self._memories(wanted + more)
        return memories

    async def _memories(self, most: int) -> list[ShownMemory]:
        hits = await self._find(STATEMENTS, most, self._scopes, kept=for_higher_trust(most))
        self._note_newer({hit.memory.id: hit.newer for hit in hits if hit.newer is not None})
        self._near |= near_ids(hits)
        return [hit.memory for hit in hits]

    def _excerpted(self, memory: ShownMemory) -> ShownMemory:
        """Return a memory, of a long one the passages that answer."""
        return replace(memory, content=excerpt(memory.content, self._words, MEMORY_LINES * self._most_characters))

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        """What finds the words of the prompt in a long text."""
        return None if self._embedded is None else words_of_prompt(self._embedded.sentences)

    @property
    def most_memories(self) -> int:
        """How many relevant memories are wanted."""
        return self._request.max_memories or self._policy.context.max_memories

    async def insight(self) -> ShownMemory | None:
        """Return the latest reflection, of the highest trust; with a prompt only if that is relevant to it."""
        seen = [index for owner in self._scopes.seen_by(self._caller) if (index := await self._scopes.index(owner))]
        latest = newest(seen, REFLECTIONS, self._now)
        if latest is not None and self._embedded is not None:
            hits = await self._find(REFLECTIONS, CLOSEST_INSIGHTS, self._scopes)
            latest = latest if latest.id in {hit.memory.id for hit in hits} else None
        return None if latest is None else await present_one(latest, self._caller, self._ports, self._now)

    async def profile(self) -> list[ShownMemory]:
        """Return what is always true of the user and of those that the prompt names, the most important first."""
        excluded, named = self._request.exclude_session_ids, await self._named()
        items = await profile_of(self._caller, self._scopes, self._now, named=named, exclude_session_ids=excluded)
        memories = [item.memory for item in items]
        self._note_newer(await newer_of(memories, STATEMENTS, self._caller, self._scopes, self._now))
        return memories

    def _note_newer(self, memories: Mapping[str, ShownMemory]) -> None:
        """Note the newer statements that contest memories, but for those of a session that is left out."""
        excluded = self._request.exclude_session_ids
        self.newer |= {one: newer for one, newer in memories.items() if newer.source.session_id not in excluded}

    async def people(self) -> list[tuple[str, Directory]]:
        """Return who is known, those named in the prompt first; no one without a prompt."""
        if self._embedded is None:
            return []
        known = await known_people(self._caller, self._scopes)
        named = await self._named()
        # stable: of as much trust those named most often come first
        known.sort(key=lambda one: ((one[0], one[1]) not in named, -one[2].trust_weight(one[1])))
        return [(root, people) for _, root, people in known[:MOST_PEOPLE]]

    async def _named(self) -> frozenset[tuple[Owner, str]]:
        """Return the entities that the prompt names, with whose they are."""
        if self._embedded is None:
            return frozenset()
        if self._names is None:
            places = [(o, await people_of(o, self._caller, self._scopes)) for o in self._caller.visibility.owners]
            named: set[tuple[Owner, str]] = set()
            with self._ports.shared.faults.spared("reading names"):
                text = self._embedded.text
                parts = [text[:MOST_READ], *([text[max(MOST_READ, len(text) - MOST_READ) :]] * (len(text) > MOST_READ))]
                finders = [
                    *self._ports.readers.finders,
                    KnownNames([people for _, people in places], weight=self._caller.trust.weight),
                ]
                async for name in in_turns({find.text for part in parts for find in find_entities(part, finders)}):
                    named |= {(owner, root) for owner, people in places for root in meant_by(name, people)}
            self._names = frozenset(named)
        return self._names

    async def read_working_memories(self) -> None:
        """Read what the user and the chat have."""
        for owner in self._caller.visibility.owners:
            name = owner.scope.user_id or owner.scope.chat_id or ""
            working = await self._ports.store.conversations.working_memory(owner)
            self._working.append((name, replace(working, author=_author(working.author, owner.scope))))

    def working_memories(self) -> list[tuple[str, WorkingMemory]]:
        """Return the working memory of the thread, of the user and of the chat, with whose it is."""
        found = list(self._working)
        if self._thread is not None:
            working = working_memory_of(self._thread)
            found.insert(0, (self._thread.id, replace(working, author=_author(working.author, self._thread.scope))))
        return [(name, memory) for name, memory in found if memory.text]

    def summary(self) -> Thread | None:
        """Return the thread if something sums it up."""
        thread = self._thread
        if thread is None or not thread.summary:
            return None
        if thread.summary_by:
            return thread
        return replace(thread, summary_author=_author(thread.summary_author, thread.scope))

    async def recent(self, most_bytes: int) -> list[Memory]:
        """Return the last messages of the thread that are in view, newest first, of about so many bytes."""
        thread, owner = self._thread, self._owner
        if thread is None or owner is None:
            return []
        count = self._request.max_recent_messages or self._policy.conversation.recent_messages
        recent: list[Memory] = []
        last, width = thread.last_seq, count
        end = max(thread.view_seq, last - count - MOST_LEFT_OUT)
        while last > end:  # page by page, as those of a session may be left out
            first, width = max(end, last - width), PAGE
            wanted = [(owner, thread.id, seq) for seq in range(last, first, -1)]
            memories = await self._messages(wanted)
            for memory in (memories[place] for place in wanted if place in memories):
                if memory.source.session_id in self._request.exclude_session_ids:
                    continue
                recent.append(memory)
                most_bytes -= len(memory.content)
                if most_bytes < 0 or len(recent) == count:
                    return recent
            last = first
        return recent

    async def recalled(self, but: Collection[str]) -> list[Recalled]:
        """Return messages of the thread that answer the prompt, with their neighbours; none of `but`."""
        if self._thread is None or self._owner is None or len(but) >= self._thread.message_count:
            return []
        wanted = self._said_in(thread_id=self._thread.id)
        scopes = EpisodeScopes(self._ports, (self._owner,))
        most = self.most_recalled + len(but)
        hits = await self._find(wanted, most, scopes, kept=for_higher_trust(most))
        return await self._with_neighbours(hits, but)

    async def others(self) -> list[Recalled]:
        """Return messages of other threads that answer the prompt, with their neighbours."""
        excluded = self._request.exclude_thread_ids
        if self._request.thread_id:
            excluded = tuple(dict.fromkeys((*excluded, self._request.thread_id)))
        most = self.most_recalled
        wanted = self._said_in(exclude_thread_ids=excluded)
        hits = await self._find(wanted, most, self._episodes, kept=for_higher_trust(most))
        return await self._with_neighbours(hits, ())

    @property
    def most_recalled(self) -> int:
        """How many messages are recalled at the most, their neighbours apart."""
        return self._request.max_recalled_messages or self._policy.conversation.recall_top_k

    def _said_in(self, *, thread_id: str = "", exclude_thread_ids: tuple[str, ...] = ()) -> Filter:
        return Filter(
            kinds=frozenset({Kind.EPISODE}),
            thread_id=thread_id,
            exclude_thread_ids=exclude_thread_ids,
            exclude_session_ids=self._request.exclude_session_ids,
        )

    async def _with_neighbours(self, hits: Iterable[Hit], but: Collection[str]) -> list[Recalled]:
        """Return hits, best first, each followed by those next to it; nothing twice."""
        policy = self._policy.conversation
        memories = [hit.memory for hit in hits if hit.memory.id not in but and not is_filler(hit.memory.content)]
        chosen = first_places(memories, self.most_recalled, lambda memory: memory.trust.is_sandbox)
        wanted: dict[Place, tuple[str, str] | None] = {(memory.owner, *place_of(memory.key)): None for memory in chosen}
        ordered: dict[Place, None] = {}
        for memory in chosen:
            thread_id, seq = place_of(memory.key)
            key = thread_id, memory.source.message_ids[0]
            after = range(seq + 1, seq + policy.recall_after + 1)
            before = range(seq - 1, max(0, seq - policy.recall_before - 1), -1)
            for n in (seq, *after, *before):
                place = memory.owner, thread_id, n
                ordered.setdefault(place)
                wanted.setdefault(place, key)
        by_place = {(memory.owner, *place_of(memory.key)): memory for memory in await self._at_the_answer(chosen)}
        by_place |= await self._messages([place for place in wanted if place not in by_place])
        remarks = _remarks(by_place)
        groups: dict[tuple[Owner, str], int] = {}
        recalled = []
        for place in ordered:
            message = by_place.get(place)
            if message is None or message.id in but or message.source.session_id in self._request.exclude_session_ids:
                continue
            group = groups.setdefault(place[:2], len(groups))
            recalled.append(Recalled(message, group, wanted[place], remarks.get(place, "")))
        return recalled

    async def _at_the_answer(self, kept: Sequence[Memory]) -> list[Memory]:
        """Return messages, of long ones the passages that answer; an index holds 8 KiB."""
        long = [memory for memory in kept if len(memory.content) > self._most_characters]
        if not long or self._embedded is None:
            return list(kept)
        words = self._words
        whole: dict[Place, str] = {}
        for owner in dict.fromkeys(memory.owner for memory in long):
            places = {place_of(memory.key) for memory in long if memory.owner == owner}
            for message in await self._ports.messages_at(owner, places):
                whole[owner, message.thread_id, message.seq] = message.said

        def shown(memory: Memory) -> Memory:
            text = whole.get((memory.owner, *place_of(memory.key)))
            return memory if text is None else replace(memory, content=excerpt(text, words, self._most_characters))

        return await asyncio.to_thread(lambda: [shown(memory) for memory in kept])

    async def _messages(self, places: Sequence[Place]) -> dict[Place, Memory]:
        """Return the messages at some places as memories: from their index, else from the store."""
        memories: dict[Place, Memory] = {}
        for owner in dict.fromkeys(place[0] for place in places):
            index = await self._episodes.index(owner)
            mine = [place for place in places if place[0] == owner]
            if index is not None:
                found = [memory for place in mine for memory in index.of_key(message_key(*place[1:]), self._now)]
            else:
                found = [m.as_memory() for m in await self._ports.messages_at(owner, {place[1:] for place in mine})]
            memories |= {(owner, *place_of(memory.key)): memory for memory in found}
        return memories


def _author(author: str, scope: Scope) -> str:
    """Return who set a text, as a reader is told: of a chat's that names no one, that it is unknown."""
    return author or (UNKNOWN if scope.chat_id is not None else "")
