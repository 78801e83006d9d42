"""What is learnt may wait until someone approves it: proposals, and what is decided of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.shared import thread_lock
from memoryd.domain.tombstones import tombstones_of
from memoryd.domain.writing.add import texts_of
from memoryd.errors import InvalidArgument, ProposalNotFound
from memoryd.learning.extractor import Learnt
from memoryd.learning.writing import Offered, embedded, judged, offered, quota_locks
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.conversation import Message
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Outcome
from memoryd.model.results import AddResult
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_id, check_text, text_digest
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector

__all__ = ["approve", "list_proposals", "proposed", "reject"]

MOST_OF_ONE = 250  # of these proposals, those of one sandbox or one user of sandboxes: no one fills the queue alone
LEAST_OF_ID = 8


async def proposed(offers: Sequence[Offered], ports: Ports, now: datetime) -> tuple[Proposal, ...]:
    """Return what is proposed of what was learnt of one owner: nothing that is known, waits, or was rejected."""
    if not offers:
        return ()
    owner = offers[0][1].owner
    asked = {"agent_id": owner.agent_id, "user_id": owner.scope.user_id or "", "chat_id": owner.scope.chat_id or ""}
    waiting = await ports.store.work.proposals(limit=limits.MAX_PROPOSALS, **asked)
    known = {text_digest(proposal.content) for proposal in waiting}
    of_one = Counter(door for proposal in waiting if proposal.trust.is_sandbox for door in _doors(proposal))
    proposals: list[Proposal] = []
    for draft, message in offers:
        digest = text_digest(draft.content)
        stones = tombstones_of(owner, draft.content, draft.source.message_ids, ports.secret, Trust)
        if (
            digest in known
            or len(waiting) + len(proposals) >= limits.MAX_PROPOSALS
            or (message.trust.is_sandbox and any(of_one[door] >= MOST_OF_ONE for door in _doors(message)))
            or ports.guards.secrets(texts_of(draft))
            or await ports.store.memories.alike(owner, now, digest=digest)
            or await ports.store.memories.tombstones(owner, [stone.digest for stone in stones])
        ):
            continue
        known.add(digest)
        of_one.update(_doors(message) if message.trust.is_sandbox else ())
        proposals.append(
            Proposal(
                id=ports.new_id(),
                agent_id=owner.agent_id,
                scope=owner.scope,
                thread_id=message.thread_id,
                session_id=message.session_id,
                message_ids=draft.source.message_ids,
                content=draft.content,
                kind=draft.kind,
                category=draft.category,
                confidence=draft.confidence,
                event_time=draft.event_time,
                expire_time=draft.expire_time,
                subjects=draft.subjects,
                tags=draft.tags,
                metadata=draft.metadata,
                speaker=message.speaker,
                trust=message.trust,
                grant_id=message.grant_id,
                author=message.author,
                create_time=now + timedelta(microseconds=len(proposals)),  # so that they keep their order
            )
        )
    return tuple(proposals)


def _doors(one: Proposal | Message) -> tuple[tuple[str, str], ...]:
    """Return by what a proposal is counted: the grant through which it came, and its user; no name that it says."""
    return tuple((kind, name) for kind, name in (("grant", one.grant_id), ("user", one.author)) if name)


async def list_proposals(
    store: Store, *, limit: int = 0, agent_id: str = "", user_id: str = "", chat_id: str = ""
) -> tuple[list[Proposal], int]:
    """Return the oldest proposals, of all or of some, and how many there are in all."""
    size = check_count(limit, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    proposals = await store.work.proposals(limit=size, agent_id=agent_id, user_id=user_id, chat_id=chat_id)
    return proposals, await store.work.proposal_count()


async def _find(proposal_id: str, store: Store) -> Proposal:
    proposal_id = check_id(proposal_id, "id")
    if len(proposal_id) < LEAST_OF_ID:
        raise InvalidArgument(f"id is {proposal_id!r}; give at least {LEAST_OF_ID} characters of it", field="id")
    proposals = await store.work.proposals(limit=2, prefix=proposal_id)
    if len(proposals) > 1:
        raise InvalidArgument(f"several proposals begin with {proposal_id}; give more of it", field="id")
    if not proposals:
        raise ProposalNotFound(f"nothing that begins with {proposal_id} waits to be approved", field="id")
    return proposals[0]


async def approve(proposal_id: str, content: str, ports: Ports, *, now: datetime) -> AddResult:
    """Make a memory of a proposal, in other words if some are given; see ApproveProposal."""
    proposal = await _find(proposal_id, ports.store)
    text = check_text(content, "content", limit=limits.MAX_CONTENT_BYTES).strip() or proposal.content
    if ports.guards.secrets([text]):
        raise InvalidArgument("content holds a credential", field="content")
    offers = [await _offer(proposal, text, ports.store, now)]
    vectors = await embedded(offers, ports.embedder)

    async def decide() -> Decision[AddResult]:
        await _find(proposal.id, ports.store)
        done = await judged(offers, vectors, proposal.owner, ports, now=now)
        became = done.outcomes[0]
        decided = () if became.outcome is Outcome.REJECTED else (proposal,)

        async def answer() -> AddResult:
            if not became.memory_id:
                return became.result()
            memory = done.session.memory(became.memory_id)
            caller = Caller(proposal.agent_id, proposal.scope.user_id, proposal.scope.chat_id)
            return became.result(await present_one(memory, caller, ports, now), memory.contested_with)

        return Decision(replace(done.change, decided=decided), answer)

    locks = [proposal.owner, thread_lock(proposal.owner, proposal.thread_id), *quota_locks(offers, ports.guards)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id="")


async def _offer(proposal: Proposal, content: str, store: Store, now: datetime) -> Offered:
    """Return a proposal as what is offered as a memory, in the name of its message."""
    messages = await store.conversations.messages(
        MessageSelector(owner=proposal.owner, thread_id=proposal.thread_id, ids=proposal.message_ids),
    )
    by_id = {message.id: message for message in messages}
    bearer = by_id.get(proposal.message_ids[0])
    if bearer is None:
        raise ProposalNotFound("the message that says so is no longer stored", field="id")
    made = offered(
        Learnt(
            content=content,
            message=bearer,
            kind=proposal.kind,
            category=proposal.category,
            confidence=proposal.confidence,
            event_time=proposal.event_time,
            lasts=None if proposal.expire_time is None else proposal.expire_time - bearer.create_time,
            subjects=proposal.subjects,
            tags=proposal.tags,
            metadata=proposal.metadata,
            also=tuple(by_id[other] for other in proposal.message_ids[1:] if other in by_id),
        ),
        now,
    )
    if made is None:
        raise InvalidArgument("it is over, or holds what was masked; reject it", field="id")
    return made


async def reject(proposal_id: str, ports: Ports, *, now: datetime) -> Proposal:
    """Drop a proposal, so that the same is not proposed again, and return it."""
    proposal = await _find(proposal_id, ports.store)

    async def decide() -> Decision[Proposal]:
        known = await _find(proposal.id, ports.store)
        stones = tombstones_of(known.owner, known.content, (), ports.secret, [Trust.HOST])
        return Decision(ChangeSet(decided=(known,), tombstones=tuple(stones)), answering(known))

    return await decide_and_commit([proposal.owner], decide, ports, now=now, grant_id="")
