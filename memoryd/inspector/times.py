"""Times as the pages show them: those of where this runs, each also as a machine reads it."""

from __future__ import annotations

from datetime import datetime, timedelta

from markupsafe import Markup

from memoryd.inspector.shown_text import as_line

__all__ = ["ago", "audit_time", "local", "moment", "span", "zone"]

WITH_HOURS, WITH_SECONDS = timedelta(days=2), timedelta(hours=1)  # ends of a line of time that are nearer have them


def local(time: datetime) -> datetime:
    """Return a time where this runs; one at the ends of the calendar as it is."""
    try:
        return time.astimezone()
    except (OverflowError, ValueError):
        return time


def zone(now: datetime) -> str:
    """Return how far the times that are shown now are from UTC: `UTC`, or `CET, UTC+01:00`."""
    here = local(now)
    offset, name = here.isoformat()[-6:], here.tzname() or ""
    if not here.utcoffset():
        return "UTC"
    return f"UTC{offset}" if name.lstrip("+-").isdecimal() else f"{name}, UTC{offset}"


def moment(time: datetime | None) -> Markup:
    """Return a time to the minute."""
    if time is None:
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(time.isoformat(), f"{local(time):%Y-%m-%d %H:%M}")


def audit_time(text: object) -> Markup:
    """Return the time of a record of the audit log, to the millisecond."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return as_line(str(text))
    return Markup('<time datetime="{}">{}</time>').format(str(text), f"{local(time):%Y-%m-%d %H:%M:%S.%f}"[:-3])


def ago(time: datetime | None, now: datetime) -> Markup:
    """Return how long ago a time is, or in how long it will be."""
    if time is None:
        return Markup("–")
    seconds = (now - time).total_seconds()
    amount = abs(seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if amount >= length or unit == "s":
            break
    told = f"{amount / length:.0f} {unit}"
    said = f"{told} ago" if seconds >= 0 else f"in {told}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        time.isoformat(), f"{local(time):%Y-%m-%d %H:%M:%S}", said
    )


def span(first: datetime, last: datetime) -> tuple[str, ...]:
    """Return what stands at the two ends of a line of time: days, or hours as well; one for a single moment."""
    if first == last:
        return (f"{local(first):%Y-%m-%d %H:%M}",)
    length = last - first
    hours = " %H:%M:%S" if length < WITH_SECONDS else " %H:%M" if length < WITH_HOURS else ""
    how = f"%Y-%m-%d{hours}"
    return f"{local(first):{how}}", f"{local(last):{how}}"
