"""One string for each property that a filter can ask for, so that store and index compare the same things."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.validation import fold

__all__ = ["entity_facets", "facets_of", "required_facets", "subject_facets", "whom_facets"]


def subject_facets(subjects: tuple[str, ...]) -> list[str]:
    """Return the facets of subjects, which are compared without regard to case."""
    return [f"subject:{subject}" for subject in dict.fromkeys(map(fold, subjects))] if subjects else []


def entity_facets(entity_ids: Iterable[str]) -> list[str]:
    """Return the facets of entities."""
    return [f"entity:{entity_id}" for entity_id in sorted(entity_ids)]


def whom_facets(wanted: Filter) -> list[str]:
    """Return the facets of which one will do, for whom a filter asks."""
    return subject_facets(wanted.subjects) + entity_facets(wanted.entity_ids)


def _exact_facets(of: Memory | Filter) -> list[str]:
    facets = [f"tag:{tag}" for tag in of.tags]
    facets += [f"metadata:{len(key)}:{key}={value}" for key, value in of.metadata.items()]
    if of.category:
        facets.append(f"category:{of.category}")
    return facets


def facets_of(memory: Memory) -> list[str]:
    """Return every facet that a memory has."""
    facets = subject_facets(memory.subjects) + _exact_facets(memory)
    if memory.mentions:
        facets += entity_facets({mention.entity_id for mention in memory.mentions})
    return facets


def required_facets(wanted: Filter) -> list[str]:
    """Return the facets that a memory must all have; of the filter's subjects any one will do."""
    return _exact_facets(wanted)
