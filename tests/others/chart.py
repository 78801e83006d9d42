"""Medians as bars, in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["chart"]

COLOURS = {"memoryd": "#1b6ca8", "chromadb": "#c8803a", "lancedb": "#5b8c5a", "mem0": "#8a5a9e"}
WIDTH, LABEL, BAR, GAP = 760, 190, 16, 4


def chart(rows: Sequence[dict[str, Any]]) -> str:
    """Return a picture of the medians, in groups by what was done and how large the scope is."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: (one["what"] != "search", one["size"])):
        groups.setdefault(f"{row['what']}, scope of {row['size']:,}", []).append(row)
    longest = max(row["p50"] for row in rows)
    parts, y = [], 10
    for name, group in groups.items():
        y += 22
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{name}</text>')
        y += 8
        for row in group:
            length = max(1.0, row["p50"] / longest * (WIDTH - LABEL - 90))
            parts.append(f'<text x="{LABEL - 10}" y="{y + BAR - 4}" text-anchor="end">{row["system"]}</text>')
            parts.append(
                f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[row["system"]]}"/>'
            )
            parts.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + BAR - 4}">{row["p50"]:.1f} ms</text>')
            y += BAR + GAP
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 14}" font-family="sans-serif"'
        f' font-size="13">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
