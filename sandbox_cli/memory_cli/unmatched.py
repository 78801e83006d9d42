"""What to say where a filter leaves nothing: which name or label in it no memory has, as one with a slip."""

from __future__ import annotations

import argparse
from typing import Any

from memory_cli.output import one_line

__all__ = ["unmatched"]


def unmatched(client: Any, args: argparse.Namespace) -> str:
    """Return the first name or label of a filter that no memory has; empty where each has some, or who asks may not."""
    from memory_client import MemorydError

    labels = [("category", one, {"category": one}) for one in [args.category] if one]
    labels += [("tag", tag, {"tags": (tag,)}) for tag in args.tag]
    labels += [("metadata", f"{key}={value}", {"metadata": {key: value}}) for key, value in args.meta]
    try:
        for label, value, of in labels:
            if _has_none(client, **of):
                return f"no memory has the {label} {value!r}"
        return next(filter(None, (_unknown(client, name) for name in args.about)), "")
    except MemorydError:  # nothing was found all the same; why is told as far as the caller may ask
        return ""


def _unknown(client: Any, name: str) -> str:
    """Return who is near, where no one is known by a name and no memory is labelled so."""
    from memory_client import AmbiguousName, EntityNotFound

    if not _has_none(client, subjects=(name,)):
        return ""
    try:
        client.entity(name, limit=1)
    except EntityNotFound as unknown:
        return one_line(str(unknown))
    except AmbiguousName:
        return ""
    return ""


def _has_none(client: Any, **only: Any) -> bool:
    """Whether no memory is so, of whatever kind, also of what has expired or was replaced."""
    from memory_client import Filter, Kind

    wanted = Filter(**only, kinds=frozenset(Kind), include_expired=True, include_superseded=True)
    return not client.page(page_size=1, filter=wanted).memories
