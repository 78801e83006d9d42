"""Marks statements as contested with each other, as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.model import limits
from memoryd.model.memory import Judgement, Memory

__all__ = ["contested_both", "marked_by", "with_room"]

KEPT_FOR_EQUALS = 2  # of the memories that one contests, so that lower trust cannot take up all of them


def with_room(contested: Sequence[tuple[Memory, Judgement]], by: Memory) -> list[tuple[Memory, Judgement]]:
    """Return those that are marked: five at the most, and none that contests five others already."""

    def has_room(memory: Memory) -> bool:
        kept = KEPT_FOR_EQUALS if memory.trust.outranks(by.trust) else 0
        return len(memory.contested_with) < limits.MAX_CONTESTED - kept

    free = max(0, limits.MAX_CONTESTED - len(by.contested_with))
    return [(memory, why) for memory, why in contested if has_room(memory)][:free]


def marked_by(memory: Memory, by: str, why: Judgement) -> Memory:
    """Return a statement as it is once another one, of the id `by`, contests it."""
    return replace(memory, contested_with=(*memory.contested_with, by), judgement=memory.judgement or why)


def contested_both(newer: Memory, contested: Sequence[tuple[Memory, Judgement]]) -> tuple[Memory, list[Memory]]:
    """Return a live statement and those that it contests, marked with each other, as far as there is room."""
    free = limits.MAX_CONTESTED - len(newer.contested_with)
    linked = with_room(contested, newer)[: max(0, free)]
    if not linked:
        return newer, []
    why = replace(linked[0][1], evidence=linked[0][0].id)
    ids = tuple(memory.id for memory, _ in linked)
    marked = replace(newer, contested_with=(*newer.contested_with, *ids), judgement=newer.judgement or why)
    return marked, [marked_by(memory, newer.id, reason) for memory, reason in linked]
