"""
LangGraph's store over notes: `MemorydStore(client)` where a graph takes a `BaseStore`.

An item is a note: its namespace and key are the path, its value is kept as JSON. Nothing judges it or learns from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    validate_op_namespace,
)

from memory_client.adapters.langgraph_items import HASHED, ROOT, item_content, item_path, part_name
from memory_client.adapters.plans import Plan, arun, ask, every_note, run
from memoryd.errors import NoteNotFound
from memoryd.model import limits
from memoryd.model.memory import Kind
from memoryd.model.query import Filter

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient, MemoryClient
    from memoryd.model.note import Note

__all__ = ["MemorydStore"]

MOST_ITEMS = 10_000  # that one search without a query, or one list of namespaces, looks at
MOST_HITS = 100  # of a search with a query, its offset included: as many as the daemon finds
MINUTE_S = 60


class MemorydStore(BaseStore):
    """
    A store of a user's items, kept by memoryd.

    `client` serves `get`, `put` and so on, `async_client` their twins; what is not given is made from the environment
    when it is first needed. A value has to be JSON, of about 200 KiB at most, as a note holds 256. `root` is where the
    items stand among the user's notes. `fields` are the paths of a value whose text a search looks at, unless `put`
    names others.

    Whose the items are, the client says. With `user_from=1` the second element of each namespace says it: only a host
    on its admin socket may do that.

    What differs from InMemoryStore: a value that holds a credential is refused (InvalidArgument); the same value put
    again changes no `updated_at`; `limit` and `offset` of a search with a query are at most 100 together.
    """

    supports_ttl = True

    def __init__(
        self,
        client: MemoryClient | None = None,
        async_client: AsyncMemoryClient | None = None,
        *,
        root: str = ROOT,
        fields: Iterable[str] = ("$",),
        ttl: TTLConfig | None = None,
        user_from: int | None = None,
    ) -> None:
        """Nothing is sent yet."""
        self.ttl_config = ttl
        self._client = client
        self._async_client = async_client
        self._root = root
        self._fields = tuple(fields)
        self._user_from = user_from

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry operations out: reads first, in order, then of each item the last put."""
        if self._client is None:
            from memory_client import MemoryClient

            self._client = MemoryClient()
        return run(self._client, self._plan(list(ops)))

    def close(self) -> None:
        """Close the plain client, also one that was given."""
        if self._client is not None:
            self._client.close()

    async def aclose(self) -> None:
        """Close the client for asyncio, also one that was given."""
        if self._async_client is not None:
            await self._async_client.close()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry operations out, as `batch`."""
        if self._async_client is None:
            from memory_client import AsyncMemoryClient

            self._async_client = AsyncMemoryClient()
        return await arun(self._async_client, self._plan(list(ops)))

    def _plan(self, ops: list[Op]) -> Plan[list[Result]]:
        for op in ops:
            validate_op_namespace(op)
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            if isinstance(op, GetOp):
                results.append((yield from self._get(op)))
            elif isinstance(op, SearchOp):
                results.append((yield from self._search(op)))
            elif isinstance(op, ListNamespacesOp):
                results.append((yield from self._namespaces(op)))
            elif isinstance(op, PutOp):
                puts[op.namespace, str(op.key)] = op
                results.append(None)
            else:
                raise TypeError(f"{type(op).__name__} is no operation of a store")
        for op in puts.values():
            yield from self._put(op)
        return results

    def _get(self, op: GetOp) -> Plan[Item | None]:
        path = self._path(op.namespace, str(op.key))
        return (yield from self._read(path, self._user(op.namespace)))

    def _put(self, op: PutOp) -> Plan[None]:
        path, user_id = self._path(op.namespace, str(op.key)), self._user(op.namespace)
        if op.value is None:
            yield from ask("delete_notes", path, missing_ok=True, user_id=user_id)
            return
        minutes = op.ttl
        seconds = 0 if minutes is None else max(1, round(minutes * MINUTE_S))
        is_renewed = (self.ttl_config or {}).get("refresh_on_read", True)
        yield from ask(
            "put_note",
            path,
            item_content(op.namespace, str(op.key), op.value, self._searched(op)),
            is_searched=op.index is not False,
            expire_after_s=0 if is_renewed else seconds,
            expire_after_access_s=max(seconds, limits.LEAST_ACCESS_S) if is_renewed and seconds else 0,
            user_id=user_id,
        )

    def _searched(self, op: PutOp) -> str:
        """Return the text by which an item is found."""
        if op.index is False or op.value is None:
            return ""
        paths = self._fields if op.index is None else op.index
        return "\n".join(text for path in paths for text in get_text_at_path(op.value, path))

    def _search(self, op: SearchOp) -> Plan[list[SearchItem]]:
        user_id = self._user(op.namespace_prefix)
        if op.query:
            return (yield from self._found(op, user_id))
        return (yield from self._listed(op, user_id))

    def _found(self, op: SearchOp, user_id: str | None) -> Plan[list[SearchItem]]:
        """Return what answers a query, best first; no more is read than is returned, unless a filter asks for it."""
        if op.offset + op.limit > MOST_HITS:
            raise ValueError(f"offset and limit of a search with a query are at most {MOST_HITS} together")
        below = Filter(kinds=frozenset({Kind.NOTE}), path_prefix=self._prefix(op.namespace_prefix))
        most = MOST_HITS if op.filter else op.offset + op.limit
        if not most:
            return []
        result = yield from ask("search", op.query, limit=most, min_score=0.0, filter=below, user_id=user_id)
        found: list[SearchItem] = []
        hits = result.hits if op.filter else result.hits[op.offset :]
        for hit in hits:
            item = yield from self._read(hit.memory.key, user_id, hit.score)
            if item is not None and _passes(item.value, op.filter):
                found.append(item)
        return found[op.offset :][: op.limit] if op.filter else found

    def _listed(self, op: SearchOp, user_id: str | None) -> Plan[list[SearchItem]]:
        """Return what lies below a namespace, in the order in which it was first put."""
        prefix = self._prefix(op.namespace_prefix)
        notes = yield from every_note(prefix, MOST_ITEMS, user_id=user_id, with_content=bool(op.filter))
        notes.sort(key=lambda note: (note.create_time, note.path))
        if op.filter:
            items = [item for note in notes if (item := self._item(note)) is not None]
            return [item for item in items if _passes(item.value, op.filter)][op.offset :][: op.limit]
        found = []
        for note in notes[op.offset :][: op.limit]:
            item = yield from self._read(note.path, user_id)
            if item is not None:
                found.append(item)
        return found

    def _read(self, path: str, user_id: str | None, score: float | None = None) -> Plan[SearchItem | None]:
        """Return the item of a path; None where there is none, or another program's note."""
        try:
            note = yield from ask("note", path, user_id=user_id)
        except NoteNotFound:
            return None
        return self._item(note, score)

    def _item(self, note: Note, score: float | None = None) -> SearchItem | None:
        """Return the item that a note holds; None where it is no item, or one of another path."""
        try:
            content = json.loads(note.value["item"])
            namespace, key, value = tuple(content["namespace"]), content["key"], content["value"]
            is_ours = self._path(namespace, key) == note.path
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        if not is_ours or not isinstance(value, dict):
            return None
        return SearchItem(namespace, key, value, note.create_time, note.update_time, score)

    def _namespaces(self, op: ListNamespacesOp) -> Plan[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        begins = max((_plain(one.path) for one in conditions if one.match_type == "prefix"), key=len, default=())
        user_id = self._user(begins)
        notes = yield from every_note(self._prefix(begins), MOST_ITEMS, user_id=user_id)
        names: dict[tuple[str, ...], str] = {}
        for note in notes:
            names.setdefault(tuple(note.path.removeprefix(f"{self._root}/").split("/")[:-1]), note.path)
        found = set()
        for parts, path in names.items():
            if any(part.startswith(HASHED) for part in parts):
                item = yield from self._read(path, user_id)
                if item is not None:
                    found.add(item.namespace)
            else:
                found.add(tuple(map(unquote, parts)))
        matching = {name for name in found if all(_matches(one, name) for one in conditions)}
        shown = sorted({name[: op.max_depth] for name in matching})
        return shown[op.offset :][: op.limit]

    def _path(self, namespace: tuple[str, ...], key: str) -> str:
        return item_path(self._root, namespace, key)

    def _prefix(self, namespace: tuple[str, ...]) -> str:
        return "/".join((self._root, *map(part_name, namespace), ""))  # with a / at the end

    def _user(self, namespace: tuple[str, ...]) -> str | None:
        if self._user_from is None:
            return None
        if len(namespace) <= self._user_from:
            raise ValueError(f"element {self._user_from} of a namespace names the user, and {namespace} has none")
        return namespace[self._user_from]


def _plain(path: Iterable[str]) -> tuple[str, ...]:
    """Return the beginning of a pattern that has no wildcard."""

    def parts() -> Iterator[str]:
        for part in path:
            if part == "*":
                return
            yield part

    return tuple(parts())


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {"*", found} for found, wanted in zip(part, path, strict=True))


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


def _passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_is(value.get(key), one) for key, one in (wanted or {}).items())


def _is(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter says; ValueError for an operator that is not known."""
    if isinstance(wanted, dict):
        if any(str(key).startswith("$") for key in wanted):
            unknown = wanted.keys() - _OPERATORS.keys()
            if unknown:
                raise ValueError(f"Unsupported operator: {min(unknown)}")
            return all(_OPERATORS[key](value, one) for key, one in wanted.items())
        return isinstance(value, dict) and all(_is(value.get(key), one) for key, one in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list | tuple) and len(value) == len(wanted) and all(map(_is, value, wanted))
    return bool(value == wanted)
