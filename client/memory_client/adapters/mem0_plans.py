"""What each method of mem0's `Memory` does, over memoryd's client; see `memory_client.mem0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_client.adapters.items import thread_id_of
from memory_client.adapters.mem0_filters import Wanted, read_filters
from memory_client.adapters.mem0_values import (
    DEFAULT_USER,
    IDS,
    ValidationError,
    checked_id,
    expiry,
    item_of,
    messages_of,
    without_ids,
)
from memory_client.adapters.plans import Plan, ask, pause
from memoryd.errors import IdentityMissing, NotFound
from memoryd.model.memory import Outcome, ShownMemory, Source
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter
from memoryd.model.work import RunState

__all__ = ["Plans"]

CHANNEL = "mem0"
PAGE = 1000
MOST_LISTED = 10_000  # memories that one call looks through
MOST_HITS = 100  # as many as the daemon finds
MOST_STEPS = 100  # corrections that are followed to the memory of now
LOOK_S = 0.2
EVENTS = {
    Outcome.INSERTED: "ADD",
    Outcome.SUPERSEDED: "UPDATE",
    Outcome.REINFORCED: "NONE",
    Outcome.REJECTED: "REJECTED",
}
UNSET: Any = object()


class Plans:
    """What each method does; `Memory` runs it, `AsyncMemory` awaits it."""

    def __init__(self, *, names_user: bool) -> None:
        self._names_user = names_user

    def _user(self, user_id: str | None) -> str | None:
        """Return whose memories are meant; None: those of the client's own user."""
        return user_id or (DEFAULT_USER if self._names_user else None)

    def add(  # noqa: PLR0913  mem0's arguments
        self,
        messages: Any,
        *,
        user_id: object = None,
        agent_id: object = None,
        run_id: object = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = None,
        infer: bool = True,
        wait: bool = False,
        **more: Any,
    ) -> Plan[dict[str, Any]]:
        """Store messages: learn from them in the background, or with infer=False keep each as it is."""
        ids = {name: checked_id(value, name) for name, value in zip(IDS, (user_id, agent_id, run_id), strict=True)}
        if not any(ids.values()):
            raise ValidationError("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        if more.get("timestamp") is not None:
            raise ValueError("timestamp is not supported here; event times come from the messages")
        said = messages_of(messages)
        user = self._user(ids["user_id"])
        scope = {name: ids[name] for name in ("agent_id", "run_id") if ids[name]}
        if infer:
            return (yield from self._append(said, user, scope, wait=wait))
        results = []
        for message in said:
            if message["role"] == "system":
                continue
            kept = {**without_ids(metadata), **scope, "role": message["role"]}
            if message.get("name"):
                kept["actor_id"] = message["name"]
            result = yield from ask(
                "add",
                message["content"],
                metadata=kept,
                source=Source(channel=CHANNEL),
                expire_time=expiry(expiration_date),
                user_id=user,
            )
            memory = result.memory
            told: dict[str, Any] = {
                "id": memory.id if memory else "",
                "memory": memory.content if memory else message["content"],
                "event": EVENTS[result.outcome],
                "actor_id": message.get("name"),
                "role": message["role"],
            }
            results.append(told | ({} if memory else {"reason": result.rejection}))
        return {"results": results}

    def _append(
        self, said: Sequence[Mapping[str, Any]], user: str | None, scope: Mapping[str, Any], *, wait: bool
    ) -> Plan[dict[str, Any]]:
        """Append messages to a conversation, from which memoryd learns by itself."""
        drafts = [MessageDraft(role=one["role"], content=one["content"], name=one.get("name") or "") for one in said]
        thread_id = thread_id_of(":".join(("mem0", *scope.values())))
        appended = yield from ask("append", thread_id, drafts, user_id=user)
        if not wait:
            return {"results": [], "pending": True}
        begun = yield from ask("run_job", "extraction")
        while begun.state is RunState.RUNNING:
            yield from pause(LOOK_S)
            begun = yield from ask("job_run", begun.id)
        ids = {message.id for message in appended.messages}
        learnt = yield from self._listed(Filter(), user)
        results = [
            {"id": memory.id, "memory": memory.content, "event": "ADD"}
            for memory in learnt
            if ids.intersection(memory.source.message_ids)
        ]
        return {"results": results}

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.1,
        rerank: bool = False,
        explain: bool = False,
        show_expired: bool = False,
        **more: Any,
    ) -> Plan[dict[str, Any]]:
        """Return the memories that answer a query, best first."""
        del rerank  # memoryd ranks by itself
        wanted = self._wanted(filters, more, "search", show_expired=show_expired)
        if not isinstance(query, str) or not query.strip():
            raise ValueError("Invalid query: must be a non-empty string.")
        _check_range(top_k, threshold)
        most = MOST_HITS if wanted.is_tested else min(top_k, MOST_HITS)
        if not top_k:
            return {"results": []}
        result = yield from ask(
            "search",
            query.strip(),
            limit=most,
            min_score=threshold,
            filter=wanted.filter,
            explain=explain,
            user_id=self._user(wanted.user_id),
        )
        found = [
            item_of(hit.memory)
            | {"score": hit.score}
            | ({"score_details": {leg.leg.value: leg.score for leg in hit.explanation}} if explain else {})
            for hit in result.hits
            if wanted.admits(hit.memory.metadata)
        ]
        return {"results": found[:top_k]}

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20, show_expired: bool = False, **more: Any
    ) -> Plan[dict[str, Any]]:
        """Return memories, newest first."""
        wanted = self._wanted(filters, more, "get_all", show_expired=show_expired)
        _check_range(top_k, 0.0)
        most = MOST_LISTED if wanted.is_tested else top_k
        memories = yield from self._listed(wanted.filter, self._user(wanted.user_id), most)
        return {"results": [item_of(memory) for memory in memories if wanted.admits(memory.metadata)][:top_k]}

    def _wanted(
        self, filters: Mapping[str, Any] | None, more: Mapping[str, Any], method: str, *, show_expired: bool
    ) -> Wanted:
        wrong = sorted({*IDS, "actor_id"} & more.keys())
        if wrong:
            raise ValueError(
                f"Top-level entity parameters {wrong} are not supported in {method}(). Use filters={{'user_id': '...'}}"
                " instead."
            )
        given = {**(filters or {})}
        for name in IDS:
            if name in given:
                given[name] = checked_id(given[name], name)
        if not any(given.get(name) for name in IDS):
            raise ValueError(
                "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}"
            )
        return read_filters(given, show_expired=show_expired)

    def _listed(self, wanted: Filter, user: str | None, most: int = MOST_LISTED) -> Plan[list[ShownMemory]]:
        found: list[ShownMemory] = []
        token = ""
        while len(found) < most:
            page = yield from ask(
                "page", page_size=min(PAGE, most - len(found)), page_token=token, filter=wanted, user_id=user
            )
            found += page.memories
            token = page.next_page_token
            if not token:
                break
        return found

    def _now(self, memory_id: str) -> Plan[ShownMemory | None]:
        """Return a memory as it is now, also where it was corrected since; None where there is none."""
        sought = str(memory_id)
        for _ in range(MOST_STEPS):
            try:
                memory: ShownMemory = yield from ask("get", sought)
            except (NotFound, IdentityMissing):  # an id of another form is no one's
                return None
            if not memory.superseded_by:
                return memory
            sought = memory.superseded_by
        return None

    def get(self, memory_id: str) -> Plan[dict[str, Any] | None]:
        """Return a memory, as it is now; None where there is none."""
        memory = yield from self._now(memory_id)
        return None if memory is None else item_of(memory) | {"id": memory_id, "score": None}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = UNSET,
        data: str | None = None,
    ) -> Plan[dict[str, str]]:
        """Set the text, metadata or end of a memory."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")
        memory = yield from self._now(memory_id)
        if memory is None:
            raise ValueError(f"Memory with id {memory_id} not found. Please provide a valid 'memory_id'")
        given: dict[str, Any] = {}
        if metadata is not None:
            given["metadata"] = {**memory.metadata, **without_ids(metadata)}
        if expiration_date is not UNSET:
            given["expire_time"] = expiry(expiration_date) or "never"
        if given:
            yield from ask("update", memory.id, **given)
        if text is not None and text != memory.content:
            yield from ask("correct", memory.id, text)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Plan[dict[str, str]]:
        """Delete a memory; for some days memoryd can restore it."""
        memory = yield from self._now(memory_id)
        if memory is None:
            raise ValueError(f"Memory with id {memory_id} not found")
        yield from ask("delete", memory.id, allow_missing=True)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: object = None, agent_id: object = None, run_id: object = None
    ) -> Plan[dict[str, str]]:
        """Delete the memories of a user, agent or run; for some days memoryd can restore them."""
        given = {name: checked_id(one, name) for name, one in zip(IDS, (user_id, agent_id, run_id), strict=True)}
        if not any(given.values()):
            raise ValueError(
                "At least one filter is required to delete all memories. If you want to delete all memories, use the"
                " `reset()` method."
            )
        wanted = read_filters({name: one for name, one in given.items() if one}, show_expired=True)
        user = self._user(wanted.user_id)
        yield from ask("delete_matching", filter=wanted.filter, shared=False, user_id=user)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> Plan[list[dict[str, Any]]]:
        """Return what a memory said, and what it says, oldest first."""
        try:
            told = yield from ask("history", str(memory_id))
        except (NotFound, IdentityMissing):
            return []
        return [
            {
                "id": memory.id,
                "memory_id": memory_id,
                "old_memory": told.memories[n - 1].content if n else None,
                "new_memory": memory.content,
                "event": "UPDATE" if n else "ADD",
                "created_at": memory.create_time.isoformat(),
                "updated_at": memory.create_time.isoformat(),
                "is_deleted": False,
            }
            for n, memory in enumerate(told.memories)
        ]

    def reset(self, *, user_id: object = None) -> Plan[None]:
        """Erase all that a user has, for good."""
        user = checked_id(user_id, "user_id")
        if not user:
            raise ValueError("reset() erases one user here: reset(user_id=…); `memoryd user erase` erases more")
        yield from ask("forget_user", user_id=self._user(user))


def _check_range(top_k: object, threshold: object) -> None:
    if not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise ValueError(f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).")
    if not isinstance(top_k, int) or isinstance(top_k, bool):
        raise ValueError("top_k must be a valid integer")  # noqa: TRY004  mem0's error
    if top_k < 0:
        raise ValueError(f"Invalid top_k: {top_k}. Must be a non-negative integer.")
