"""The data sets in indexes of this process, for trying weights: no daemon, each text embedded once."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from memoryd.domain.conversation.embed import LONG_MESSAGE_BYTES
from memoryd.domain.retrieval.question import read_question
from memoryd.domain.retrieval.ranking import WEIGHTS, Ranked, Weights, ranked
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.windows import codes_of, later_windows
from memoryd.index.analysis import analyse, embedded_text, indexed_memory
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import Entry
from memoryd.model.embedding import Embedded
from memoryd.model.limits import MAX_CONTENT_BYTES, MAX_MESSAGE_CONTENT_BYTES, MAX_QUERY_BYTES
from memoryd.model.memory import Kind, Memory, Source
from memoryd.model.query import Filter
from memoryd.model.scope import Scope
from tests.eval.drafts import cut, happened, words_of

__all__ = ["FACTS", "NOTES", "LocalSet"]

FACTS = frozenset({"letta-core", "letta-update", "precisionmembench"})  # statements; the others were said, or are texts
TURNS_A_NOTE = 16  # of LoCoMo's: 3 KB
NOTES = {"locomo-notes": TURNS_A_NOTE, "locomo-notes-without-windows": TURNS_A_NOTE, "locomo-long-messages": 0}
"""Sets of `in_notes`, with the turns of a note; 0: all."""
WITHOUT_WINDOWS = "locomo-notes-without-windows"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 32
DEPTH = 50
DIMENSIONS = 384  # of the packaged model
Read = Callable[[list[str], bool], list[Embedded]]


def _reader() -> Read:
    encoder = builtin_encoder()

    def read(texts: list[str], query: bool) -> list[Embedded]:
        parts = (texts[n : n + AT_ONCE] for n in range(0, len(texts), AT_ONCE))
        return [one for part in parts for one in encoder.read(part, query=query)]

    return read


class LocalSet:
    """One data set: an index for each conversation, and its headline questions."""

    def __init__(self, name: str, scorer: ModuleType, cache: Path | None) -> None:
        """Embed it, or read from the cache what was embedded before."""
        self.name = name
        self.scorer = scorer
        data = in_notes(scorer, NOTES[name]) if name in NOTES else scorer.load(name)
        self.kind = Kind.FACT if name in FACTS else Kind.EPISODE
        self._most_bytes = MAX_CONTENT_BYTES if NOTES.get(name, 1) else MAX_MESSAGE_CONTENT_BYTES
        headline = set(data.headline)
        asked = [q for q in data.questions if q.gold and (not headline or q.category in headline)]
        self.data = replace(data, questions=asked)
        held = self._embedded(cache)
        self.indexes: dict[str, ScopeIndex] = {}
        self.ids: dict[str, list[str]] = {}
        for conversation, items in data.memories.items():
            entries = [
                Entry(made, " ".join(analyse(indexed_memory(made))), one.vector, "f", one.tokens, one.windows)
                for n, (item, one) in enumerate(zip(items, held["memories"][conversation], strict=True))
                for made in [self._memory(item, n)]
            ]
            self.indexes[conversation] = ScopeIndex([entries], dimensions=DIMENSIONS, fingerprint="f")
            self.ids[conversation] = [item.id for item in items]
        self._queries: Mapping[str, Embedded] = held["queries"]

    def _embedded(self, cache: Path | None) -> Any:
        path = None if cache is None else cache / f"{self.name}.pickle"
        if path is not None and path.exists():
            return pickle.loads(path.read_bytes())  # noqa: S301  written by this module
        print(f"embedding {self.name} …", file=sys.stderr)
        read = _reader()
        memories = {}
        for conversation, items in self.data.memories.items():
            texts = [embedded_text(str(i.meta.get("speaker") or ""), _content(i, self._most_bytes)) for i in items]
            made = zip(texts, read(texts, False), strict=True)
            memories[conversation] = [self._with_windows(text, one, read) for text, one in made]
        queries = list(dict.fromkeys(question.query for question in self.data.questions))
        held = {
            "memories": memories,
            "queries": dict(zip(queries, read([cut(q, MAX_QUERY_BYTES) for q in queries], True), strict=True)),
        }
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(held))
        return held

    def _with_windows(self, text: str, one: Embedded, read: Read) -> Embedded:
        """Return a text with its later windows, if it is as long as a message or memory that has some."""
        if self.name == WITHOUT_WINDOWS:
            return one
        is_short = self.kind is Kind.EPISODE and len(text.encode()) <= LONG_MESSAGE_BYTES
        windows = [] if is_short else later_windows(text)
        vectors = [window.vector for window in read(windows, False)] if windows else []
        return replace(one, windows=codes_of(np.stack(vectors))) if vectors else one

    def _memory(self, item: Any, n: int) -> Memory:
        created = NOW + timedelta(microseconds=n)
        return Memory(
            id=item.id,
            agent_id="default",
            scope=Scope("user"),
            content=_content(item, self._most_bytes),
            create_time=created,
            event_time=happened(item) or created,
            kind=self.kind,
            source=Source(str(item.meta.get("speaker") or ""), session_id=str(item.meta.get("session") or "")),
        )

    def rank(
        self, conversation: str, query: str, *, weights: Weights = WEIGHTS, with_model: bool = True
    ) -> tuple[Ranked, list[str]]:
        """Return a conversation ranked by a question, and the ids of its items by document."""
        index = self.indexes[conversation]
        embedded = self._queries[query] if with_model else None
        wanted = Filter(kinds=frozenset({self.kind}))
        question = read_question(cut(query, MAX_QUERY_BYTES), embedded, wanted, NOW + timedelta(hours=1), [index])
        return ranked([index], question, weights), self.ids[conversation]

    def score(self, *, weights: Weights = WEIGHTS, with_model: bool = True) -> dict[str, float]:
        """Return the figures of the headline questions, by the scorer's names."""
        headline: dict[str, float] = self.report(weights=weights, with_model=with_model)["headline"]
        return headline

    def report(self, *, weights: Weights = WEIGHTS, with_model: bool = True) -> dict[str, Any]:
        """Return what the scorer says: the figures of the headline questions, of all, and by category."""

        def search(conversation: str, query: str, k: int) -> list[str]:
            found, ids = self.rank(conversation, query, weights=weights, with_model=with_model)
            order = np.argsort(-found.place, kind="stable")[:k]
            return [ids[row] for row in found.pools[0].rows[order].tolist()]

        found: dict[str, Any] = self.scorer.evaluate(self.data, search, depth=DEPTH)
        return found


def _content(item: Any, most_bytes: int = MAX_CONTENT_BYTES) -> str:
    text = cut(words_of(item), most_bytes)
    return text if text.strip() else "-"


def in_notes(scorer: ModuleType, turns_a_note: int) -> Any:
    """Return LoCoMo with every other session as notes, or all these as one (34 KB), among the turns of the others."""
    data = scorer.load("locomo")
    memories: dict[str, list[Any]] = {}
    held: dict[tuple[str, str], str] = {}
    for conversation, items in data.memories.items():
        sessions: dict[str, list[Any]] = {}
        for item in items:
            sessions.setdefault(str(item.meta.get("session")), []).append(item)
        told = [(turns, n % 2 == 0) for n, turns in enumerate(sessions.values())]
        if not turns_a_note:
            whole = [turn for turns, is_noted in told for turn in turns if is_noted]
            told = [(whole, True), *((turns, False) for turns, is_noted in told if not is_noted)]
        memories[conversation] = []
        for turns, is_noted in told:
            size = (turns_a_note or len(turns)) if is_noted else 1
            for some in (turns[at : at + size] for at in range(0, len(turns), size)):
                memories[conversation].append(_note(some) if is_noted else some[0])
                held.update({(conversation, one.id): some[0].id for one in some})
    questions = [
        replace(one, gold=list(dict.fromkeys(held[one.conv, item] for item in one.gold if (one.conv, item) in held)))
        for one in data.questions
    ]
    return replace(data, memories=memories, questions=questions, headline=())


def _note(turns: Sequence[Any]) -> Any:
    """Return some turns as one text."""
    text = "\n".join(f"{one.meta.get('speaker')}: {_content(one)}" for one in turns)
    return replace(turns[0], text=text, meta={**turns[0].meta, "session": "", "speaker": ""})
