"""Forgetting many at once: what a filter describes, and what has faded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE, in_turns
from memoryd.domain.decay import PRESETS, confidence_at, fades
from memoryd.domain.forgetting.forget import forget_entries
from memoryd.domain.idempotency import once
from memoryd.domain.ports import Ports
from memoryd.domain.reading.showing import shown
from memoryd.domain.subjects import resolve_subjects_exactly
from memoryd.errors import InvalidArgument, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.memory import Memory, Source
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from memoryd.model.validation import check_id, check_text
from memoryd.store.base import Cursor

__all__ = ["Decayed", "Faded", "Match", "Swept", "decay", "forget_matching"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What shall go: all that is set must match."""

    filter: Filter = field(default_factory=Filter)
    text: str = ""
    """Taken literally, without regard to case."""
    source: Source = field(default_factory=Source)
    grant_id: str = ""
    shared: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what would match everything, or nearly."""
        put = object.__setattr__
        put(self, "text", check_text(self.text, "text", limit=limits.MAX_QUERY_BYTES))
        put(self, "grant_id", check_id(self.grant_id, "grant_id"))
        if self.text and len(self.text.strip()) < limits.MIN_MATCH_CHARACTERS:
            raise InvalidArgument(
                f"text has {len(self.text.strip())} characters; give at least {limits.MIN_MATCH_CHARACTERS}",
                field="text",
            )
        narrow = self.filter != Filter(
            include_expired=self.filter.include_expired, include_superseded=self.filter.include_superseded
        )
        if not (narrow or self.text or self.grant_id or self.source != Source() or self.shared is not None):
            raise InvalidArgument("the filter is empty; say what shall go", field="filter")

    @property
    def canonical(self) -> object:
        """The same for the same match, in whatever order its sets are."""
        wanted = {name: getattr(self.filter, name) for name in Filter.__dataclass_fields__}
        wanted |= {
            "kinds": sorted(k.value for k in self.filter.kinds),
            "metadata": sorted(self.filter.metadata.items()),
        }
        wanted["entity_ids"] = sorted(self.filter.entity_ids)
        return (wanted, self.text, self.source, self.grant_id, self.shared)

    def admits(self, memory: Memory) -> bool:
        """Whether a memory that passes the filter passes the rest."""
        asked, said = self.source, memory.source
        return (
            (not self.text or self.text.casefold() in memory.content.casefold())
            and (not self.grant_id or self.grant_id == memory.grant_id)
            and (self.shared is None or self.shared == (memory.scope.chat_id is not None))
            and (not asked.speaker or asked.speaker == said.speaker)
            and (not asked.channel or asked.channel == said.channel)
            and (not asked.thread_id or asked.thread_id == said.thread_id)
            and (not asked.session_id or asked.session_id == said.session_id)
            and (not asked.message_ids or bool({*asked.message_ids} & {*said.message_ids}))
        )


@dataclass(frozen=True, slots=True)
class Swept:
    """What went, newest first, or would; the memories themselves only in a dry run."""

    ids: tuple[str, ...]
    purge_time: datetime | None = None
    memories: tuple[Memory, ...] = ()


async def forget_matching(
    match: Match,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    dry_run: bool = False,
    purge: bool = False,
    request_id: str = "",
) -> Swept:
    """
    Hide, or erase with purge, all that a caller sees and a match describes, in slices between which others get on.

    What is stored meanwhile stays. See DeleteMemories in the contract.
    """
    async with once(ports, caller, "DeleteMemories", request_id, (match.canonical, purge)) as request:
        due_time = ports.purge_time(now)
        earlier = await request.earlier()
        if earlier is not None and not dry_run:
            return Swept(tuple(gone for gone, _, _ in earlier.outcomes if gone), earlier.create_time + (due_time - now))
        found = await _matching(match, caller, ports, now)
        if dry_run:
            first = await shown(found[: limits.MAX_SHOWN], caller, ports, now)
            return Swept(tuple(memory.id for memory in found), None, tuple(first))
        if purge and any(memory.trust.outranks(caller.trust) for memory in found):
            raise TrustTooLow("some of it is of higher trust; delete it without purge, so that it can be restored")
        ids = [memory.id for memory in found]
        noted = None if purge else request.record(tuple((i, None, ()) for i in ids), now)
        if not found and noted is not None:
            await ports.store.commit(ChangeSet(request=noted))
        for n in range(0, len(found), SLICE):
            part = found[n : n + SLICE]
            last = n + SLICE >= len(found)
            async with ports.owner_lock(*(memory.owner for memory in part)):
                ports.check_grant(caller.grant_id, now)
                await forget_entries(
                    await ports.store.entries([memory.id for memory in part]),
                    ports,
                    now=now,
                    due_time=due_time,
                    purge=purge,
                    trust=caller.trust,
                    request=noted if last else None,
                )
        return Swept(tuple(ids), None if purge or not ids else due_time)


async def _matching(match: Match, caller: Caller, ports: Ports, now: datetime) -> list[Memory]:
    wanted = await resolve_subjects_exactly(match.filter, caller, ports, now=now)
    found: list[Memory] = []
    after: Cursor | None = None
    while True:
        page = await ports.store.page(caller.visibility, wanted, now=now, limit=READ_AT_ONCE, after=after)
        found += [memory for memory in page if match.admits(memory) and wanted.is_about(memory)]
        if len(page) < READ_AT_ONCE:
            return found
        after = Cursor(page[-1].create_time, page[-1].id)


@dataclass(frozen=True, slots=True)
class Faded:
    """A memory that has faded: whose it is, and what its confidence has become."""

    id: str
    owner: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Decayed:
    """How many memories were looked at, and those that have faded, least confidence first."""

    examined_count: int
    faded: tuple[Faded, ...]
    held: str = ""
    """Why nothing went, or would go; empty unless the clock is in doubt."""


async def decay(ports: Ports, *, now: datetime, dry_run: bool = False) -> Decayed:
    """Forget what has faded, in slices between which others get their turn; or only tell what would go."""
    name = ports.policy.rules.decay
    if PRESETS[name] is None:
        return Decayed(0, ())
    held = ports.doubt(now)
    if held and not dry_run:
        return Decayed(0, (), held)
    due_time = ports.purge_time(now)
    examined, after = 0, ""
    gone: list[Faded] = []
    while page := await ports.store.live_page(limit=READ_AT_ONCE, after=after):
        after = page[-1].id
        examined += len(page)
        faded = [memory async for memory in in_turns(page) if fades(memory, now, name)]
        gone += [Faded(m.id, m.scope.user_id or m.scope.chat_id or "", confidence_at(m, now, name)) for m in faded]
        for n in range(0, 0 if dry_run else len(faded), SLICE):
            await _forget_faded(faded[n : n + SLICE], ports, now, due_time)
    gone.sort(key=lambda one: (one.confidence, one.id))
    return Decayed(examined, tuple(gone), held)


async def _forget_faded(part: Sequence[Memory], ports: Ports, now: datetime, due_time: datetime) -> None:
    async with ports.owner_lock(*(memory.owner for memory in part)):
        entries = await ports.store.entries([memory.id for memory in part])
        still = [
            entry
            async for entry in in_turns(entries)
            if entry.memory.supersede_time is None and fades(entry.memory, now, ports.policy.rules.decay)
        ]
        await forget_entries(
            still, ports, now=now, due_time=due_time, purge=False, trust=Trust.SANDBOX, reason="decayed", remember=False
        )
