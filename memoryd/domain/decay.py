"""
How a memory fades: its confidence as a pure function of time.

c = c0 · f(days since it was created, last reinforced, or last recalled by the host, whichever is latest). c0 is what is
stored and is not changed by it, so that how often the job runs changes nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from memoryd.model.memory import Kind, Memory

__all__ = ["EXTRACTION", "PRESETS", "Preset", "confidence_at", "fades"]

DAY = timedelta(days=1)
EXTRACTION = "extraction"  # the channel of what was learnt from messages, not stated
REFLECTION = "reflection"  # that of digests; their keys begin with it


@dataclass(frozen=True, slots=True)
class Preset:
    """One way of fading."""

    rate: float
    """Of a fact, per day, in exp(−rate · days)."""
    event_rate: float
    """Of an event, which is counted from its event_time."""
    prune_below: float
    """A confidence below it is forgotten."""
    stated_fades: bool
    """Whether what a person stated fades too, or only what was extracted."""
    step_idle_days: float = 0.0
    """Days without any fading; above 0 the confidence is multiplied by (1 − rate) for each whole day after them."""
    prune_after_days: float = 0.0
    """Nothing younger is forgotten."""


PRESETS: dict[str, Preset | None] = {
    "gentle": Preset(0.01, 0.02, 0.05, stated_fades=False),
    "ebbinghaus": Preset(0.1, 0.1, 0.05, stated_fades=True),
    "step": Preset(0.05, 0.05, 0.3, stated_fades=True, step_idle_days=7.0, prune_after_days=30.0),
    "off": None,
}
"""By the name of memory.decay; the constants are those of the requirements."""

_RECURRING = re.compile(
    r"\b(?:birthday|anniversary|every|each|annual(?:ly)?|yearly|monthly|weekly|daily|mondays|tuesdays|wednesdays|thursdays"
    r"|fridays|saturdays|sundays)\b",
    re.IGNORECASE,
)


def _rate(memory: Memory, preset: Preset) -> float:
    """Return how fast a memory fades per day; 0: never."""
    if memory.protected or memory.kind in {Kind.REFLECTION, Kind.EPISODE}:
        return 0.0
    if memory.decay_rate is not None:
        return memory.decay_rate
    if not preset.stated_fades and memory.source.channel != EXTRACTION:
        return 0.0
    if memory.kind is Kind.EVENT:
        return 0.0 if _RECURRING.search(memory.content) else preset.event_rate
    return preset.rate


def _clock(memory: Memory, now: datetime) -> datetime:
    """Return the time from which it fades; none that a wrong clock has put into the future, but of an event."""
    at_event = memory.kind is Kind.EVENT or memory.create_time > now
    start = memory.event_time if at_event else memory.create_time
    later = (memory.reinforce_time, memory.trusted_recall_time)
    return max([start, *(time for time in later if time is not None and time <= now)])


def confidence_at(memory: Memory, now: datetime, name: str) -> float:
    """Return the confidence of a memory at a time, 0–1, under the preset of a name."""
    preset = PRESETS[name]
    if preset is None:
        return memory.confidence
    rate = _rate(memory, preset)
    days = (now - _clock(memory, now)) / DAY
    if rate <= 0.0 or days <= 0.0:
        return memory.confidence
    if preset.step_idle_days:
        steps = math.floor(max(0.0, days - preset.step_idle_days))
        return memory.confidence * max(0.0, 1.0 - rate) ** steps
    return memory.confidence * math.exp(-rate * days)


def fades(memory: Memory, now: datetime, name: str) -> bool:
    """Whether a memory has faded so far that it is forgotten."""
    preset = PRESETS[name]
    if preset is None or memory.protected or memory.kind in {Kind.REFLECTION, Kind.EPISODE}:
        return False
    if (now - memory.create_time) / DAY < preset.prune_after_days:
        return False
    return _rate(memory, preset) > 0.0 and confidence_at(memory, now, name) < preset.prune_below
