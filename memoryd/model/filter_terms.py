"""
One string for each property that a filter can ask for, so that store and index compare the same things.

A store keeps the terms of what it holds. Where other terms come out of a memory than before, raise VERSION: at its next
start a store writes those of all memories anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.validation import fold, metadata_text

__all__ = [
    "VERSION",
    "entity_terms",
    "excluded_terms",
    "filter_terms_of",
    "key_of",
    "metadata_term",
    "required_terms",
    "subject_terms",
    "values_of",
]

VERSION = 2
"""Of the terms of a memory; `tests/test_filter_terms.py` pins what it stands for."""
CONTESTED = "contested:"


def _subject_terms(subjects: tuple[str, ...]) -> list[str]:
    """Return the terms of subjects, which are compared without regard to case."""
    return [f"subject:{subject}" for subject in dict.fromkeys(map(fold, subjects))] if subjects else []


def entity_terms(entity_ids: Iterable[str]) -> list[str]:
    """Return the terms of entities."""
    return [f"entity:{entity_id}" for entity_id in sorted(entity_ids)]


def subject_terms(wanted: Filter) -> list[str]:
    """Return the terms for the subjects of a filter; a memory needs one of them."""
    return _subject_terms(wanted.subjects) + entity_terms(wanted.entity_ids)


def metadata_term(key: str, value: Any) -> str:
    """Return the term of a key of metadata with a value; a text and a value of JSON have different ones."""
    text = isinstance(value, str)
    return f"{_begin(key, of_texts=text)}{value if text else metadata_text(value)}"


def values_of(key: str, terms: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield those of some terms that are of a key of metadata, each with the value."""
    texts, values = _begin(key, of_texts=True), _begin(key, of_texts=False)
    for term in terms:
        if term.startswith(texts):
            yield term, term[len(texts) :]
        elif term.startswith(values):
            yield term, json.loads(term[len(values) :])


def key_of(term: str) -> str:
    """Return the key of metadata that a term is of; "" for any other."""
    kind, _, rest = term.partition(":")
    if kind not in {"metadata", "metadata_json"}:
        return ""
    length, _, rest = rest.partition(":")
    return rest[: int(length)]


def _begin(key: str, *, of_texts: bool) -> str:
    return f"{'metadata' if of_texts else 'metadata_json'}:{len(key)}:{key}="


def _exact_terms(of: Memory | Filter) -> list[str]:
    terms = [f"tag:{tag}" for tag in of.tags]
    terms += [metadata_term(key, value) for key, value in of.metadata.items()]
    if of.category:
        terms.append(f"category:{of.category}")
    if of.import_id:
        terms.append(f"import:{of.import_id}")
    return terms


def filter_terms_of(memory: Memory) -> list[str]:
    """Return every term that a memory has."""
    terms = _subject_terms(memory.subjects) + _exact_terms(memory)
    if memory.contested_with:
        terms.append(CONTESTED)
    if memory.mentions:
        terms += entity_terms({mention.entity_id for mention in memory.mentions})
    if memory.kind is Kind.NOTE:
        parts = memory.key.split("/")
        terms += [f"path:{'/'.join(parts[:n])}" for n in range(1, len(parts) + 1)]
    if memory.kind is not Kind.EPISODE and memory.source.thread_id:
        terms.append(f"source:{memory.source.thread_id}")
    if memory.kind is Kind.EPISODE:
        terms += _place_terms([memory.source.thread_id], [memory.source.session_id])
    return terms


def _place_terms(thread_ids: Iterable[str], session_ids: Iterable[str]) -> list[str]:
    terms = [f"thread:{thread_id}" for thread_id in thread_ids if thread_id]
    return terms + [f"session:{session_id}" for session_id in session_ids if session_id]


def excluded_terms(wanted: Filter) -> list[str]:
    """Return the terms that a memory may have none of."""
    return _place_terms(wanted.exclude_thread_ids, wanted.exclude_session_ids)


def required_terms(wanted: Filter) -> list[str]:
    """Return the terms that a memory must all have; of the filter's subjects any one will do."""
    more = [f"path:{wanted.path_prefix}"] if wanted.path_prefix else []
    more += [CONTESTED] if wanted.contested else []
    more += [f"source:{wanted.source_thread_id}"] if wanted.source_thread_id else []
    return _exact_terms(wanted) + _place_terms([wanted.thread_id], []) + more
