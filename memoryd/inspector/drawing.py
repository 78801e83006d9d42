"""Pictures that the server draws as SVG: the lines of figures over time, and points on a line of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup

__all__ = ["bar", "lines", "points_in_time", "size"]

WIDTH, HEIGHT = 640, 160
LEFT, BOTTOM, TOP = 56, 20, 10
KIBI = 1024
STEPS = (1, 2, 5, 10)


def bar(share: float, name: str) -> Markup:
    """Return a bar that is as long as a share of 1; a negative one goes the other way, and looks otherwise."""
    length = min(1.0, abs(share))
    kind = "bar less" if share < 0 else "bar"
    return Markup(
        '<svg class="{}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="rail" width="100" height="10"/><rect class="fill" width="{}" height="10"/></svg>'
    ).format(kind, name, f"{100 * length:.1f}")


def _top_of(most: float) -> float:
    """Return a round number that is not below the largest value."""
    if most <= 0:
        return 1.0
    scale = 10.0
    while scale > most:
        scale /= 10
    while scale * 10 <= most:
        scale *= 10
    return next(scale * step for step in STEPS if scale * step >= most)


def size(count: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < KIBI:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"  # noqa: PLR2004
        count /= KIBI
    return f"{count:.1f} TiB"


def _short(value: float, unit: str) -> str:
    """Return a number with its unit, short: bytes as the other pages have them."""
    if unit == "B":
        return size(value)
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{prefix} {unit}".strip()
    return f"{value:.3g} {unit}".strip()


def lines(
    times: Sequence[datetime], series: Sequence[tuple[str, Sequence[float | None]]], unit: str, name: str
) -> Markup:
    """Return lines over time, one a series (at most 4); None is a gap."""
    values = [value for _, line in series for value in line if value is not None]
    if len(times) < 2 or not values:  # noqa: PLR2004  a line has two ends
        return Markup('<p class="quiet">Nothing was measured yet.</p>')
    top = _top_of(max(values))
    first, last = times[0].timestamp(), times[-1].timestamp()
    span = max(1e-9, last - first)

    def x(n: int) -> float:
        return LEFT + (WIDTH - LEFT) * (times[n].timestamp() - first) / span

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    parts = [
        Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, name),
        *(
            Markup(
                '<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>'
                '<text class="tick" x="{3}" y="{4}" text-anchor="end">{5}</text>'
            ).format(LEFT, WIDTH, f"{y(at):.1f}", LEFT - 6, f"{y(at) + 4:.1f}", _short(at, unit))
            for at in (0.0, top / 2, top)
        ),
        *(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                at, HEIGHT - 4, anchor, f"{time.astimezone():%H:%M:%S}"
            )
            for at, anchor, time in ((LEFT, "start", times[0]), (WIDTH, "end", times[-1]))
        ),
    ]
    for n, (_, line) in enumerate(series):
        path, points, pen = [], [], "M"
        for place, value in enumerate(line):
            if value is None:
                pen = "M"
                continue
            at = f"{x(place):.1f} {y(value):.1f}"
            if pen == "M" and (place + 1 == len(line) or line[place + 1] is None):
                points.append(f"M{at}h0")  # one alone is a point, wide enough to be seen
            path.append(f"{pen}{at}")
            pen = "L"
        if path:
            parts.append(Markup('<path class="line line-{}" d="{}"/>').format(n + 1, " ".join(path)))
        if points:
            parts.append(Markup('<path class="line alone line-{}" d="{}"/>').format(n + 1, " ".join(points)))
    parts.append(Markup("</svg>"))
    if len(series) > 1:
        keys = Markup("").join(
            Markup('<span><i class="key line-{}"></i>{}</span> ').format(n + 1, label)
            for n, (label, _) in enumerate(series)
        )
        parts.append(Markup('<p class="keys">{}</p>').format(keys))
    return Markup("").join(parts)


def points_in_time(rows: Sequence[tuple[str, Sequence[datetime]]], name: str) -> Markup:
    """Return rows of points on one line of time, the latest on the right."""
    every = [time.timestamp() for _, times in rows for time in times]
    if not every:
        return Markup("")
    first, last = min(every), max(every)
    span = max(1.0, last - first)
    height = 34 * len(rows) + BOTTOM
    left, right = 84, WIDTH - 8
    parts = [Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, height, name)]
    for n, (label, times) in enumerate(rows):
        y = 20 + 34 * n
        parts.append(
            Markup(
                '<text class="tick" x="0" y="{}">{}</text><line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            ).format(y + 4, label, left, right, y, y)
        )
        parts += [
            Markup('<circle class="point line-{}" cx="{}" cy="{}" r="4"/>').format(
                n + 1, f"{left + (right - left) * (time.timestamp() - first) / span:.1f}", y
            )
            for time in times
        ]
    for at, anchor, stamp in ((left, "start", first), (right, "end", last)):
        told = f"{datetime.fromtimestamp(stamp, UTC):%Y-%m-%d}"
        parts.append(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>').format(at, height - 4, anchor, told)
        )
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)
