"""Bars and curves as SVG, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bars", "curves"]

COLOURS = ("#1b6ca8", "#c8803a", "#5b8c5a", "#8a5a9e", "#a83a3a", "#555555", "#2a9d8f")
BAR, GAP, LEFT, WIDTH = 13, 12, 190, 760
PLOT, MARGIN, LEGEND = 330, 60, 250


def _page(width: float, height: float, body: Sequence[str]) -> str:
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="sans-serif"'
        f' font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{lines}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def bars(groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return one group of bars for each key, with one bar for each value, 0–1; the same names share a colour."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    body = [
        part
        for n, name in enumerate(names)
        for part in (
            f'<rect x="{LEFT + 150 * n}" y="8" width="11" height="11" fill="{COLOURS[n % len(COLOURS)]}"/>',
            _text(LEFT + 150 * n + 16, 18, name),
        )
    ]
    y = 36.0
    for title, group in groups.items():
        body.append(_text(LEFT - 8, y + BAR * len(group) / 2 + 4, title, "end"))
        for name, value in group.items():
            width = value * (WIDTH - LEFT - 60)
            colour = COLOURS[names.index(name) % len(COLOURS)]
            body.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            body.append(_text(LEFT + width + 5, y + BAR - 3, f"{value:.3f}"))
            y += BAR
        y += GAP
    return _page(WIDTH, y, body)


def curves(lines: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, diagonal: bool = False) -> str:
    """Return lines through points of 0–1; with the diagonal where both are the same."""

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return MARGIN + point[0] * PLOT, 20 + (1 - point[1]) * PLOT

    body = []
    for n in range(6):
        (left, top), (right, _) = at((0, n / 5)), at((1, n / 5))
        body.append(f'<line x1="{left}" x2="{right}" y1="{top:.1f}" y2="{top:.1f}" stroke="#ddd"/>')
        body.append(_text(left - 6, top + 4, f"{n / 5:.1f}", "end"))
        body.append(_text(at((n / 5, 0))[0], PLOT + 38, f"{n / 5:.1f}", "middle"))
    if diagonal:
        (x1, y1), (x2, y2) = at((0, 0)), at((1, 1))
        body.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#999" stroke-dasharray="4 4"/>')
    for n, (name, points) in enumerate(lines.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in map(at, points))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in map(at, points)]
        body.append(_text(MARGIN + PLOT + 20, 36 + 20 * n, name, colour=colour))
    body.append(_text(MARGIN + PLOT / 2, PLOT + 58, x, "middle"))
    body.append(_text(6, 12, y))
    return _page(MARGIN + PLOT + LEGEND, PLOT + 70, body)
