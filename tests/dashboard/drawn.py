"""A dashboard of Grafana as a picture: its panels where it places them, with what Prometheus answered, in SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.eval.pictures import page, text_at

__all__ = ["Series", "drawn", "legend_of"]

COLOURS = ("#1b6ca8", "#c8803a", "#5b8c5a", "#8a5a9e", "#a83a3a", "#2a9d8f", "#7a7a2e", "#555555")
COLUMN, ROW, GAP = 48, 26, 6  # pixels of one cell of Grafana's grid of 24 columns
MOST_LEGENDS, LEGEND_HEIGHT, CHARACTER = 8, 13, 5.4
STEPS = {
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "s": ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "short": ((1e9, "G"), (1e6, "M"), (1e3, "k")),
}
MORE = {"reqps": "/s", "ops": "/s", "wps": "/s"}


class Series(NamedTuple):
    """One line of a panel: its name, and its points as (seconds from the begin, value)."""

    name: str
    points: Sequence[tuple[float, float]]


def legend_of(pattern: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series as Grafana makes it: `{{label}}` is the value of a label."""
    for name, value in labels.items():
        pattern = pattern.replace(f"{{{{{name}}}}}", value)
    return pattern


def drawn(board: Mapping[str, Any], told: Mapping[int, Sequence[Series]], seconds: float) -> str:
    """Return the picture of a board, with the series of each panel by its id, over so many seconds."""
    panels = board["panels"]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * ROW
    body = [
        _row(panel) if panel["type"] == "row" else _panel(panel, told.get(panel["id"], ()), seconds) for panel in panels
    ]
    return page(24 * COLUMN, height, body, font_size=10, background="#f4f5f5")


def _row(panel: Mapping[str, Any]) -> str:
    place = panel["gridPos"]
    return text_at(8, place["y"] * ROW + 18, panel["title"], size=14)


def _panel(panel: Mapping[str, Any], series: Sequence[Series], seconds: float) -> str:
    place, defaults = panel["gridPos"], panel["fieldConfig"]["defaults"]
    left, top = place["x"] * COLUMN + GAP / 2, place["y"] * ROW + GAP / 2
    width, height = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP
    highest = sorted(series, key=lambda one: -max((value for _, value in one.points), default=0.0))
    shown = [one for one in highest if one.points][:MOST_LEGENDS]
    lines = _legend_lines(shown, width - 20)
    plot = (left + 58, top + 28, width - 72, height - 46 - LEGEND_HEIGHT * len(lines))
    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="white" stroke="#ddd" rx="2"/>',
        text_at(left + 10, top + 16, panel["title"], size=12),
    ]
    if not shown:
        parts.append(text_at(left + width / 2, top + height / 2, "none", anchor="middle"))
        return "\n".join(parts)
    values = [value for one in shown for _, value in one.points]
    low = float(defaults["min"]) if "min" in defaults else min(values)
    high = max(values) if max(values) > low else low + 1.0
    parts += _axes(plot, low, high, defaults.get("unit", "short"), seconds)
    for n, one in enumerate(shown):
        parts.append(_line(plot, one.points, (low, high), seconds, COLOURS[n % len(COLOURS)]))
    for n, line in enumerate(lines):
        y = top + height - 6 - LEGEND_HEIGHT * (len(lines) - 1 - n)
        parts += [text_at(left + x, y, name, colour=COLOURS[index % len(COLOURS)]) for x, name, index in line]
    return "\n".join(parts)


def _axes(plot: tuple[float, float, float, float], low: float, high: float, unit: str, seconds: float) -> list[str]:
    left, top, width, height = plot
    parts = []
    for part in (0.0, 0.5, 1.0):
        y, value = top + height * (1 - part), low + (high - low) * part
        parts.append(f'<line x1="{left:.0f}" x2="{left + width:.0f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(text_at(left - 5, y + 3, _told(value, unit), anchor="end"))
        anchor = "end" if part == 1.0 else "middle"
        parts.append(text_at(left + width * part, top + height + 12, f"{seconds * part / 60:.2g} min", anchor=anchor))
    return parts


def _line(
    plot: tuple[float, float, float, float],
    points: Sequence[tuple[float, float]],
    span: tuple[float, float],
    seconds: float,
    colour: str,
) -> str:
    left, top, width, height = plot
    low, high = span
    at = [
        f"{left + width * s / seconds:.0f},{top + height * (1 - (max(low, value) - low) / (high - low)):.1f}"
        for s, value in points
    ]
    return f'<polyline points="{" ".join(at)}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def _legend_lines(series: Sequence[Series], width: float) -> list[list[tuple[float, str, int]]]:
    """Return the names in lines that fit, each with its place and its number."""
    lines: list[list[tuple[float, str, int]]] = []
    x = width
    for n, one in enumerate(series):
        takes = 14 + CHARACTER * len(one.name)
        if x + takes > width:
            lines.append([])
            x = 10.0
        lines[-1].append((x, one.name, n))
        x += takes
    return lines


def _told(value: float, unit: str) -> str:
    """Return a value with its unit, of the size that fits."""
    steps = STEPS.get(unit, STEPS["short"])
    size, name = next((step for step in steps if abs(value) >= step[0]), (1, ""))
    return f"{value / size:.3g} {name}{MORE.get(unit, '')}".strip()
