"""
Pictures that the server draws as SVG: the lines of figures over time, and points on a line of time.

What is written on them is text of the page, so that it is as large as other text on a window of any width.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from markupsafe import Markup

from memoryd.inspector import times

__all__ = ["bar", "lines", "points_in_time", "size"]

WIDTH, HEIGHT = 600, 120  # in which lines are drawn; a page stretches them, and what is written stays as it is
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


def _top_of(most: float, unit: str) -> float:
    """Return a round number that is not below the largest value; of bytes, round in the unit in which it is written."""
    if most <= 0:
        return 1.0
    kibi = 1.0
    while unit == "B" and most / kibi >= KIBI:
        kibi *= KIBI
    scale = 10.0
    while scale > most / kibi:
        scale /= 10
    while scale * 10 <= most / kibi:
        scale *= 10
    return next(scale * step for step in STEPS if scale * step >= most / kibi) * kibi


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
    if unit == "ms" and value >= 1000:  # noqa: PLR2004
        return f"{value / 1000:.3g} s"
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{prefix} {unit}".strip()
    return f"{value:.3g} {unit}".strip()


def lines(
    moments: Sequence[datetime], series: Sequence[tuple[str, Sequence[float | None]]], unit: str, name: str
) -> Markup:
    """Return lines over time, one a series (at most 4); None is a gap."""
    values = [value for _, line in series for value in line if value is not None]
    if len(moments) < 2 or not values:  # noqa: PLR2004  a line has two ends
        return Markup('<p class="quiet">Nothing was measured yet.</p>')
    top = _top_of(max(values), unit)
    first, last = moments[0].timestamp(), moments[-1].timestamp()
    xs = [WIDTH * (moment.timestamp() - first) / max(1e-9, last - first) for moment in moments]
    scale = Markup("").join(Markup("<span>{}</span>").format(_short(at, unit)) for at in (top, top / 2, 0.0))
    parts = [
        Markup('<line class="grid" x1="0" x2="{0}" y1="{1}" y2="{1}"/>').format(WIDTH, at)
        for at in (0, HEIGHT // 2, HEIGHT)
    ]
    for n, (_, line) in enumerate(series):
        path, alone = _paths(xs, [None if value is None else HEIGHT * (1 - value / top) for value in line])
        if path:
            parts.append(Markup('<path class="line line-{}" d="{}"/>').format(n + 1, path))
        if alone:
            parts.append(Markup('<path class="line alone line-{}" d="{}"/>').format(n + 1, alone))
    plot = Markup(
        '<div class="plot" role="img" aria-label="{}"><div class="scale">{}</div>'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none">{}</svg><div class="ends">{}</div></div>'
    ).format(
        name, scale, WIDTH, HEIGHT, Markup("").join(parts),
        _ends([f"{times.local(moment):%H:%M:%S}" for moment in (moments[0], moments[-1])]),
    )  # fmt: skip
    return plot + _keys([label for label, _ in series])


def _paths(xs: Sequence[float], ys: Sequence[float | None]) -> tuple[str, str]:
    """Return the path of a line with its gaps, and that of the points that stand alone, wide enough to be seen."""
    path, alone, pen = [], [], "M"
    for n, y in enumerate(ys):
        if y is None:
            pen = "M"
            continue
        at = f"{xs[n]:.1f} {y:.1f}"
        if pen == "M" and (n + 1 == len(ys) or ys[n + 1] is None):
            alone.append(f"M{at}h0")
        path.append(f"{pen}{at}")
        pen = "L"
    return " ".join(path), " ".join(alone)


def _ends(told: Sequence[str]) -> Markup:
    return Markup("").join(Markup("<span>{}</span>").format(one) for one in told)


def _keys(labels: Sequence[str]) -> Markup:
    """Return which colour each line has, unless there is only one."""
    if len(labels) < 2:  # noqa: PLR2004
        return Markup("")
    keys = Markup("").join(
        Markup('<span><i class="key line-{}"></i>{}</span> ').format(n + 1, label) for n, label in enumerate(labels)
    )
    return Markup('<p class="keys">{}</p>').format(keys)


def points_in_time(rows: Sequence[tuple[str, Sequence[datetime]]], name: str) -> Markup:
    """Return rows of points on one line of time, the latest on the right."""
    every = [moment for _, moments in rows for moment in moments]
    if not every:
        return Markup("")
    first, last = min(every), max(every)
    length = (last - first).total_seconds()
    drawn = [
        Markup('<span>{}</span><svg><line class="grid" x1="0" x2="100%" y1="50%" y2="50%"/>{}</svg>').format(
            label,
            Markup("").join(
                Markup('<circle class="point line-{}" cx="{}%" cy="50%" r="4"/>').format(
                    n + 1, f"{100 * (moment - first).total_seconds() / length if length else 50:.2f}"
                )
                for moment in moments
            ),
        )
        for n, (label, moments) in enumerate(rows)
    ]
    return Markup('<div class="points" role="img" aria-label="{}">{}<div class="ends">{}</div></div>').format(
        name, Markup("").join(drawn), _ends(times.span(first, last))
    )
