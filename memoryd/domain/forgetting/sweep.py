"""Forgetting many at once: what a filter describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.forgetting.forget import KEPT, forget_slice
from memoryd.domain.idempotency import deleted_ids, idempotent
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.subjects import resolve_subjects_exactly
from memoryd.errors import Contended, InvalidArgument, TrustTooLow, Unavailable
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import RecordedRequest
from memoryd.model.memory import Memory, Source
from memoryd.model.query import Filter
from memoryd.model.receipt import MemoriesReceipt
from memoryd.model.results import DeletedMany
from memoryd.model.validation import check_id, check_text
from memoryd.store.memories import Cursor

__all__ = ["Match", "forget_matching", "matching"]


FIRST_FIELDS = (
    "kinds", "subjects", "entity_ids", "tags", "metadata", "category", "event_time_from", "event_time_to",
    "create_time_from", "create_time_to", "include_expired", "include_superseded",
)  # fmt: skip
"""Those of a filter when requests were hashed in the first form; later ones are not in it."""


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
        put(self, "source", self.source.checked())
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
    def first_form(self) -> object:
        """What the first form of request hashes was made of; see `payload`."""
        wanted = {name: getattr(self.filter, name) for name in FIRST_FIELDS}
        wanted |= {
            "kinds": sorted(k.value for k in self.filter.kinds),
            "metadata": sorted(self.filter.metadata.items()),
        }
        wanted["entity_ids"] = sorted(self.filter.entity_ids)
        return (wanted, self.text, self.source, self.grant_id, self.shared)

    def admits(self, memory: Memory) -> bool:
        """Whether a memory that passes the filter passes the rest."""
        asked, source = self.source, memory.source
        return (
            (not self.text or self.text.casefold() in memory.content.casefold())
            and (not self.grant_id or self.grant_id == memory.grant_id)
            and (self.shared is None or self.shared == (memory.scope.chat_id is not None))
            and (not asked.speaker or asked.speaker == source.speaker)
            and (not asked.channel or asked.channel == source.channel)
            and (not asked.thread_id or asked.thread_id == source.thread_id)
            and (not asked.session_id or asked.session_id == source.session_id)
            and (not asked.message_ids or bool({*asked.message_ids} & {*source.message_ids}))
        )


async def forget_matching(
    match: Match,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    dry_run: bool = False,
    purge: bool = False,
    request_id: str = "",
) -> DeletedMany:
    """
    Hide, or erase with purge, all that a caller sees and a match describes, in slices between which others get on.

    What is stored meanwhile stays. See DeleteMemories in the contract.
    """
    async with idempotent(
        ports, caller, "DeleteMemories", request_id, (match, purge), (match.first_form, purge)
    ) as request:
        due_time = None if purge else ports.purge_time(now)
        earlier = await request.earlier()
        if earlier is not None and not dry_run:
            return _replayed(earlier, ports, now)
        memories = await matching(match, caller, ports, now)
        ids = tuple(memory.id for memory in memories)
        if dry_run:
            first = await present(memories[: limits.MAX_SHOWN], caller, ports, now)
            return DeletedMany(ids, len(ids), memories=tuple(first), dry_run=True)
        if purge and not all(map(caller.may_erase, memories)):
            raise TrustTooLow(KEPT)
        noted = None if purge else request.record(MemoriesReceipt.of(memories), now)
        for n in range(0, max(1, len(memories)), SLICE):
            last = n + SLICE >= len(memories)
            try:
                await forget_slice(
                    memories[n : n + SLICE],
                    ports,
                    now=now,
                    due_time=due_time,
                    trust=caller.trust,
                    grant_id=caller.grant_id,
                    request=noted if last else None,
                )
            except Contended:
                earlier = await request.earlier()
                if earlier is None:
                    raise
                return _replayed(earlier, ports, now)  # someone else has carried out the same request
            except Unavailable as error:
                if not n:
                    raise
                raise Unavailable(f"{n} of {len(memories)} are deleted, the others are not: {error.message}") from None
        return DeletedMany(ids, len(ids), due_time if ids else None)


def _replayed(earlier: RecordedRequest, ports: Ports, now: datetime) -> DeletedMany:
    ids = deleted_ids(earlier)
    return DeletedMany(ids, len(ids), earlier.create_time + (ports.purge_time(now) - now))


async def matching(match: Match, caller: Caller, ports: Ports, now: datetime) -> list[Memory]:
    """Return all that a caller sees and a match describes."""
    wanted = await resolve_subjects_exactly(match.filter, caller, ports, now=now)
    memories: list[Memory] = []
    after: Cursor | None = None
    while True:
        page = await ports.store.memories.page(caller.visibility, wanted, now=now, limit=READ_AT_ONCE, after=after)
        memories += [memory for memory in page if match.admits(memory) and wanted.is_about(memory)]
        if len(page) < READ_AT_ONCE:
            return memories
        after = Cursor(page[-1].create_time, page[-1].id)
