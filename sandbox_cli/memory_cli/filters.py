"""What the options of the command ask for, as a filter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from memory_cli.common import Usage

__all__ = ["filter_of", "is_filtered", "mapping"]


def mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs of metadata as one mapping; Usage where a key comes twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise Usage("--meta names a key twice")
    return values


def filter_of(args: argparse.Namespace) -> Any:
    """Return the filter that the options say."""
    from memory_client import Filter, Kind

    return Filter(
        kinds=frozenset(Kind(kind) for kind in args.kind),
        subjects=tuple(args.about),
        tags=tuple(args.tag),
        metadata=mapping(args.meta),
        where=args.where,
        category=args.category,
        path_prefix=getattr(args, "below", ""),
        import_id=args.import_id,
        contested=args.contested,
        source_thread_id=args.learnt_from,
        event_time_from=args.since,
        event_time_to=args.until,
        include_expired=args.include_expired,
        include_superseded=args.include_superseded,
    )


def is_filtered(args: argparse.Namespace) -> bool:
    """Whether a filter leaves something out."""
    given = (
        "about", "tag", "kind", "meta", "where", "category", "import_id", "contested", "learnt_from", "since", "until",
    )  # fmt: skip
    return any(getattr(args, name) for name in given)
