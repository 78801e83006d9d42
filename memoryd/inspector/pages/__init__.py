"""The pages: a module each, with the paths that it answers in ROUTES."""

from __future__ import annotations

from memoryd.inspector.pages import (
    audit,
    backups,
    contested,
    context,
    conversations,
    figures,
    grants,
    jobs,
    memories,
    memory,
    notes,
    overview,
    people,
    review,
    search,
    timeline,
)

__all__ = ["ROUTES"]

ROUTES = tuple(
    route
    for module in (
        overview, memories, memory, search, context, timeline, people, contested, conversations, notes, review, grants,
        jobs, backups, audit, figures,
    )
    for route in module.ROUTES
)  # fmt: skip
"""Method, path below the base, and what answers; of two that match, the first."""
