"""What to say where a filter leaves nothing: which part of it no memory has, as of a name with a slip."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["unmatched"]


def unmatched(client: Any, args: argparse.Namespace) -> str:
    """Return the first part of a filter that no memory has; empty where each has some, or nothing may be listed."""
    from memory_client import AmbiguousName, EntityNotFound, Filter, PermissionDenied

    def has_none(**only: Any) -> bool:
        wanted = Filter(**only, include_expired=args.include_expired, include_superseded=args.include_superseded)
        return not client.page(page_size=1, filter=wanted).memories

    try:
        for name in args.about:
            if has_none(subjects=(name,)):
                client.entity(name, limit=1)
        labels = [("category", one, {"category": one}) for one in [args.category] if one]
        labels += [("tag", tag, {"tags": (tag,)}) for tag in args.tag]
        labels += [("metadata", f"{key}={value}", {"metadata": {key: value}}) for key, value in args.meta]
        return next((f"no memory has the {label} {value!r}" for label, value, of in labels if has_none(**of)), "")
    except EntityNotFound as unknown:
        return str(unknown)
    except (AmbiguousName, PermissionDenied):
        return ""
