"""What the reference store holds, and how a change set changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TypeVar

from memoryd.errors import Contended, Unavailable
from memoryd.model.change import PURGE, ChangeSet, ConversationChange, Entry, RecordedRequest, Tombstone
from memoryd.model.conversation import Message, Session, Thread, WorkingMemory
from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, TokenKey
from memoryd.model.learnt import Proposal
from memoryd.model.receipt import Name, without_gone
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, RunState, Work
from memoryd.store.commits import check_counters, check_leases, check_marks
from memoryd.store.conversations import numbered
from memoryd.store.ram.notes import NotesByPath
from memoryd.store.work import MOST_RUNS

__all__ = ["RamState", "entries_after", "latest_first"]

T = TypeVar("T")


class RamState:
    """Dictionaries of everything."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self.entries: dict[str, Entry] = {}
        self.requests: dict[tuple[Owner, str, str], RecordedRequest] = {}
        self.grants: dict[str, Grant] = {}
        self.said_on: Counter[tuple[str, date]] = Counter()
        self.token_keys: dict[str, TokenKey] = {}
        self.named: dict[str, Entity] = {}
        self.tombstones: set[Tombstone] = set()
        self.threads: dict[tuple[Owner, str], Thread] = {}
        self.sessions: dict[tuple[Owner, str, str], Session] = {}
        self.messages: dict[int, Entry] = {}
        self.said: dict[int, Message] = {}
        self.working: dict[Owner, WorkingMemory] = {}
        self.work: dict[tuple[Owner, str, str], Work] = {}
        self.runs: dict[str, Run] = {}
        self.proposals: dict[str, Proposal] = {}
        self.marks: dict[str, datetime] = {}
        self.leases: dict[str, Lease] = {}
        self.counters: dict[CounterName, int] = {}
        self.notes = NotesByPath()
        self.seq = 0
        self.newest: datetime | None = None
        self.closed = False
        self.id = random_bytes(16).hex()
        self.secret = random_bytes(32)

    def apply(self, change: ChangeSet) -> None:
        """Take in all but the memories, where only an insert can fail."""
        self.requests = self._requests_after(change)
        self.grants.update({grant.id: grant for grant in change.grants})
        for grant_id in change.forget_grants:
            self.grants.pop(grant_id, None)
        self.token_keys = {**{key.id: key for key in change.token_keys}, **self.token_keys}
        for key_id in change.drop_keys:
            self.token_keys.pop(key_id, None)
        self.named.update({entity.id: entity for entity in change.entities})
        for entity in change.forget_entities:
            self.named.pop(entity.id, None)
        self.tombstones = (self.tombstones | {*change.tombstones}) - {*change.lift}
        self.notes.apply(change)
        self._purge_owner(change.purge_owner)
        self._keep_vectors_of(change.message_vectors_of)
        self._note_work(change)
        times = [entry.memory.create_time for entry in change.inserts]
        self.newest = max([*times, *([self.newest] if self.newest else [])], default=None)

    def _requests_after(self, change: ChangeSet) -> dict[tuple[Owner, str, str], RecordedRequest]:
        requests, is_gone = dict(self.requests), _gone_with(change)
        if change.request is not None:
            requests[change.request.owner, change.request.method, change.request.request_id] = change.request
        before = change.forget_requests_before
        return {
            key: replace(request, receipt=left)
            for key, request in requests.items()
            if (before is None or request.create_time >= before)
            and (left := without_gone(request.receipt, is_gone)) is not None
        }

    def check_threads(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended where a thread has changed since a change of it was decided."""
        known = {key: (thread.revision, thread.create_time) for key, thread in self.threads.items()}
        for change in changes:
            for thread in () if change.conversation is None else change.conversation.threads:
                key = thread.owner, thread.id
                if (thread.revision - 1, thread.create_time) != known.get(key, (0, thread.create_time)):
                    raise Contended("others have changed the thread at the same time; nothing was written: try again")
                known[key] = (thread.revision, thread.create_time)

    def check_work(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended where marks, leases or counters are not as the changes say."""
        marks, leases, counters = dict(self.marks), self.leases, self.counters
        for change in changes:
            check_marks(change, marks)
            marks |= change.marks
            check_leases(change, _left_of(leases, change))
            leases = _leases_after(leases, change)
            check_counters(change, counters)
            counters = _counters_after(counters, change)

    def converse(self, change: ConversationChange, commit_seq: int) -> None:
        """Take in what changes of conversations."""
        self.threads.update({(thread.owner, thread.id): thread for thread in change.threads})
        self.sessions.update({(session.owner, session.thread_id, session.id): session for session in change.sessions})
        for n, new_message in enumerate(change.messages):
            number = numbered(commit_seq, n)
            self.said[number] = message = new_message.message
            self.said_on[message.grant_id, message.create_time.date()] += 1
            self.messages[number] = Entry(new_message.message.as_memory(), new_message.terms)
        if change.working_memory is not None:
            self.working.pop(change.owner, None)
            if change.working_memory.text:
                self.working[change.owner] = change.working_memory
        made = {embedding.memory_id: embedding for embedding in change.embeddings}
        for number, entry in self.messages.items():
            made_anew = made.get(entry.memory.id)
            is_its = (
                made_anew is not None
                and made_anew.message_id in entry.memory.source.message_ids
                and entry.memory.owner == change.owner
            )
            if made_anew is not None and is_its and number > change.embedded_after:
                self.messages[number] = made_anew.given_to(entry)
        self._erase(change)

    def _erase(self, change: ConversationChange) -> None:
        gone = {(message.thread_id, message.id) for message in change.purge_messages}
        threads = {thread.id for thread in change.purge_threads}
        for number, message in list(self.said.items()):
            named = message.thread_id in threads or (message.thread_id, message.id) in gone
            if named and message.owner == change.owner:
                del self.said[number], self.messages[number]
        for thread in change.purge_threads:
            self.threads.pop((thread.owner, thread.id), None)
            for key in [key for key in self.sessions if key[:2] == (thread.owner, thread.id)]:
                del self.sessions[key]

    def _purge_owner(self, owner: Owner | None) -> None:
        if owner is None:
            return
        gone = {memory_id for memory_id, entry in self.entries.items() if entry.memory.owner == owner}
        self.entries = {one: entry for one, entry in self.entries.items() if one not in gone}
        self.named = {one: entity for one, entity in self.named.items() if entity.owner != owner}
        self.tombstones = {stone for stone in self.tombstones if stone.owner != owner}
        self.threads = {key: thread for key, thread in self.threads.items() if key[0] != owner}
        self.sessions = {key: session for key, session in self.sessions.items() if key[0] != owner}
        numbers = [number for number, message in self.said.items() if message.owner == owner]
        for number in numbers:
            del self.said[number], self.messages[number]
        self.working.pop(owner, None)

    def _keep_vectors_of(self, fingerprint: str) -> None:
        for number, entry in self.messages.items() if fingerprint else ():
            if entry.fingerprint != fingerprint:
                self.messages[number] = replace(entry, vector=None, fingerprint="", tokens=b"", windows=b"")

    def _note_work(self, change: ChangeSet) -> None:
        self._note_marks(change)
        for work in change.work:
            key = work.owner, work.kind, work.thread_id
            known = self.work.get(key)
            self.work[key] = work if known is None else replace(work, seq=max(work.seq, known.seq))
        talk = change.conversation
        gone = set() if talk is None else {(talk.owner, thread.id) for thread in talk.purge_threads}
        if gone or change.purge_owner is not None:
            self.work = {
                key: work
                for key, work in self.work.items()
                if (work.owner, work.thread_id) not in gone and work.owner != change.purge_owner
            }
        self._note_proposals(change)
        for run_id in change.stop_runs:
            run = self.runs.get(run_id)
            if run is not None and run.state is RunState.RUNNING:
                self.runs[run_id] = replace(run, stop_requested=True)
        for run in change.runs:
            self.runs[run.id] = run
            of_job = sorted((other for other in self.runs.values() if other.job == run.job), key=latest_first)
            for old in of_job[MOST_RUNS:]:
                del self.runs[old.id]

    def _note_marks(self, change: ChangeSet) -> None:
        marks = dict(change.marks)
        if PURGE in marks and PURGE in self.marks:
            marks[PURGE] = max(marks[PURGE], self.marks[PURGE] + timedelta(microseconds=1))
        self.marks.update(marks)
        self.leases = _leases_after(self.leases, change)
        self.counters = _counters_after(self.counters, change)

    def _note_proposals(self, change: ChangeSet) -> None:
        talk = change.conversation
        threads = set() if talk is None else {(talk.owner, thread.id) for thread in talk.purge_threads}
        messages = (
            set()
            if talk is None
            else {(message.owner, message.thread_id, message.id) for message in talk.purge_messages}
        )
        self.proposals |= {proposal.id: proposal for proposal in change.proposals}
        gone = {proposal.id for proposal in change.decided}
        for waiting in self.proposals.values():
            named = {(waiting.owner, waiting.thread_id, message_id) for message_id in waiting.message_ids}
            said = (waiting.owner, waiting.thread_id) in threads or not messages.isdisjoint(named)
            if said or waiting.owner == change.purge_owner:
                gone.add(waiting.id)
        for one_id in gone:
            self.proposals.pop(one_id, None)


def _left_of(leases: Mapping[str, Lease], change: ChangeSet) -> dict[str, Lease]:
    """Return the leases that a change does not give back: what someone else holds stays theirs."""
    freed = {(lease.name, lease.holder) for lease in change.freed_leases}
    return {name: lease for name, lease in leases.items() if (name, lease.holder) not in freed}


def _leases_after(leases: Mapping[str, Lease], change: ChangeSet) -> dict[str, Lease]:
    return _left_of(leases, change) | {lease.name: lease for lease in change.leases}


def _counters_after(counters: Mapping[CounterName, int], change: ChangeSet) -> dict[CounterName, int]:
    left = {name: value for name, value in counters.items() if name not in change.forget_counters}
    return left | dict(change.counters)


def _gone_with(change: ChangeSet) -> Callable[[Name], bool]:
    """Return what says whether a name is of what a change erases."""
    memories = {(memory.owner, memory.id) for memory in change.purges}
    talk = change.conversation
    threads = set() if talk is None else {(thread.owner, thread.id) for thread in talk.purge_threads}
    messages = (
        set() if talk is None else {(message.owner, message.thread_id, message.id) for message in talk.purge_messages}
    )

    def is_gone(name: Name) -> bool:
        if name.owner == change.purge_owner:
            return True
        if name.thread_id:
            place = name.owner, name.thread_id
            return place in threads or (*place, name.id) in messages
        return (name.owner, name.id) in memories

    return is_gone


def entries_after(known: dict[str, Entry], change: ChangeSet) -> dict[str, Entry]:
    """Return the memories after a change; Unavailable if one that is added is there already."""
    entries = dict(known)
    for entry in change.inserts:
        if entry.memory.id in entries:
            raise Unavailable(f"memory {entry.memory.id} exists already")
        entries[entry.memory.id] = entry
    for entry in change.updates:
        old = entries.get(entry.memory.id)
        if old is not None:
            memory = replace(
                entry.memory,
                recall_time=old.memory.recall_time,
                recall_count=old.memory.recall_count,
                trusted_recall_time=old.memory.trusted_recall_time,
            )
            entries[memory.id] = replace(old, memory=memory, terms=entry.terms)
    for embedding in change.embeddings:
        known_as = entries.get(embedding.memory_id)
        if known_as is not None:
            entries[embedding.memory_id] = embedding.given_to(known_as)
    for memory in change.purges:
        entries.pop(memory.id, None)
    return entries


def latest_first(run: Run) -> tuple[float, str]:
    """Return what runs are sorted by, latest start first."""
    return -run.start_time.timestamp(), run.id
