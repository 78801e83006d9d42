"""Bars and curves as SVG, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bars", "curves", "page", "scatter", "text_at"]

LABEL_HEIGHT, CHARACTER, NAME_WIDTH = 13, 6.2, 140
COLOURS = ("#1b6ca8", "#c8803a", "#5b8c5a", "#8a5a9e", "#a83a3a", "#555555", "#2a9d8f")
BAR, GAP, LEFT, WIDTH = 13, 12, 190, 760
PLOT, MARGIN, LEGEND = 330, 60, 250


def page(width: float, height: float, body: Sequence[str], *, font_size: int = 12, background: str = "white") -> str:
    """Return a picture of so many pixels, with these parts."""
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="sans-serif"'
        f' font-size="{font_size}">\n<rect width="100%" height="100%" fill="{background}"/>\n{lines}\n</svg>\n'
    )


def text_at(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222", *, size: int = 0) -> str:
    """Return a text in its place; `size` in pixels, 0: that of the picture."""
    of_size = f' font-size="{size}"' if size else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{of_size} text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def bars(groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return one group of bars for each key, with one bar for each value, 0–1; the same names share a colour."""
    left = max(LEFT, 20 + CHARACTER * max(map(len, groups)))
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    legend = min(left, WIDTH - NAME_WIDTH * len(names))
    body = [
        part
        for n, name in enumerate(names)
        for x in [legend + NAME_WIDTH * n]
        for part in (
            f'<rect x="{x:.1f}" y="8" width="11" height="11" fill="{COLOURS[n % len(COLOURS)]}"/>',
            text_at(x + 16, 18, name),
        )
    ]
    y = 36.0
    for title, group in groups.items():
        body.append(text_at(left - 8, y + BAR * len(group) / 2 + 4, title, "end"))
        for name, value in group.items():
            width = value * (WIDTH - left - 60)
            colour = COLOURS[names.index(name) % len(COLOURS)]
            body.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            body.append(text_at(left + width + 5, y + BAR - 3, f"{value:.3f}"))
            y += BAR
        y += GAP
    return page(WIDTH, y, body)


def curves(lines: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, diagonal: bool = False) -> str:
    """Return lines through points of 0–1; with the diagonal where both are the same."""

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return MARGIN + point[0] * PLOT, 20 + (1 - point[1]) * PLOT

    body = []
    for n in range(6):
        (left, top), (right, _) = at((0, n / 5)), at((1, n / 5))
        body.append(f'<line x1="{left}" x2="{right}" y1="{top:.1f}" y2="{top:.1f}" stroke="#ddd"/>')
        body.append(text_at(left - 6, top + 4, f"{n / 5:.1f}", "end"))
        body.append(text_at(at((n / 5, 0))[0], PLOT + 38, f"{n / 5:.1f}", "middle"))
    if diagonal:
        (x1, y1), (x2, y2) = at((0, 0)), at((1, 1))
        body.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#999" stroke-dasharray="4 4"/>')
    for n, (name, points) in enumerate(lines.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in map(at, points))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in map(at, points)]
        body.append(text_at(MARGIN + PLOT + 20, 36 + 20 * n, name, colour=colour))
    body.append(text_at(MARGIN + PLOT / 2, PLOT + 58, x, "middle"))
    body.append(text_at(6, 12, y))
    return page(MARGIN + PLOT + LEGEND, PLOT + 70, body)


def scatter(points: Mapping[str, tuple[float, float]], *, x: str, y: str) -> str:
    """Return named points; both axes reach from the least to the largest value."""
    (left, right), (bottom, top) = (
        (min(values) - spare, max(values) + spare)
        for values in zip(*points.values(), strict=True)
        for spare in [0.05 * (max(values) - min(values)) or 0.5]
    )
    body = []
    for n in range(6):
        across, up = left + (right - left) * n / 5, bottom + (top - bottom) * n / 5
        px, py = MARGIN + PLOT * n / 5, 20 + PLOT * (1 - n / 5)
        body.append(f'<line x1="{MARGIN}" x2="{MARGIN + PLOT}" y1="{py:.1f}" y2="{py:.1f}" stroke="#ddd"/>')
        body.append(text_at(MARGIN - 6, py + 4, f"{up:.3f}", "end"))
        body.append(text_at(px, PLOT + 38, f"{across:.2f}", "middle"))
    above = 0.0
    for n, (name, point) in enumerate(sorted(points.items(), key=lambda one: -one[1][1])):
        colour = COLOURS[n % len(COLOURS)]
        px = MARGIN + (point[0] - left) / (right - left) * PLOT
        py = 20 + (top - point[1]) / (top - bottom) * PLOT
        above = max(above + LABEL_HEIGHT, py + 4)
        body.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{colour}"/>')
        label = MARGIN + PLOT + 20
        body.append(f'<line x1="{px:.1f}" y1="{py:.1f}" x2="{label - 4}" y2="{above - 4:.1f}" stroke="{colour}"/>')
        body.append(text_at(label, above, f"{name}: {point[0]:.2f}, {point[1]:.3f}", colour=colour))
    body.append(text_at(MARGIN + PLOT / 2, PLOT + 58, x, "middle"))
    body.append(text_at(6, 12, y))
    return page(MARGIN + PLOT + LEGEND, PLOT + 70, body)
