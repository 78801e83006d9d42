"""One string for each property that a filter can ask for, so that store and index compare the same things."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.validation import fold

__all__ = ["entity_terms", "filter_terms_of", "required_terms", "subject_terms"]


def _subject_terms(subjects: tuple[str, ...]) -> list[str]:
    """Return the terms of subjects, which are compared without regard to case."""
    return [f"subject:{subject}" for subject in dict.fromkeys(map(fold, subjects))] if subjects else []


def entity_terms(entity_ids: Iterable[str]) -> list[str]:
    """Return the terms of entities."""
    return [f"entity:{entity_id}" for entity_id in sorted(entity_ids)]


def subject_terms(wanted: Filter) -> list[str]:
    """Return the terms for the subjects of a filter; a memory needs one of them."""
    return _subject_terms(wanted.subjects) + entity_terms(wanted.entity_ids)


def _exact_terms(of: Memory | Filter) -> list[str]:
    terms = [f"tag:{tag}" for tag in of.tags]
    terms += [f"metadata:{len(key)}:{key}={value}" for key, value in of.metadata.items()]
    if of.category:
        terms.append(f"category:{of.category}")
    return terms


def filter_terms_of(memory: Memory) -> list[str]:
    """Return every term that a memory has."""
    terms = _subject_terms(memory.subjects) + _exact_terms(memory)
    if memory.mentions:
        terms += entity_terms({mention.entity_id for mention in memory.mentions})
    return terms


def required_terms(wanted: Filter) -> list[str]:
    """Return the terms that a memory must all have; of the filter's subjects any one will do."""
    return _exact_terms(wanted)
