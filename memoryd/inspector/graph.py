"""The people of an owner as a picture: who they are to the user, and who is named together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memoryd.inspector.shown_text import in_words

__all__ = ["Person", "drawn"]

WIDTH, HEIGHT = 760, 520
MARGIN_X, MARGIN_Y = 90, 34
ROUNDS = 120
PULL_OF_MIDDLE = 0.35  # on who is linked to no one, next to 0.75 for a link
MOST_IN_NAME = 22  # characters of a name under its point
MOST_IN_RELATION = 18


@dataclass(frozen=True, slots=True)
class Person:
    """One point of the picture."""

    id: str
    name: str
    address: str
    relation: str = ""
    """What the person is to the user; empty: only named."""
    weight: int = 1
    """How many memories name it."""


def _placed(count: int, links: Mapping[tuple[int, int], int]) -> list[tuple[float, float]]:
    """
    Return a place for each point: linked ones attract, all repel, and the first, the user, stays in the middle.

    The forces are those of Fruchterman and Reingold (1991), from a circle, so that one graph is always drawn alike.
    """
    ideal = math.sqrt(WIDTH * HEIGHT / max(1, count)) * 0.75
    places = [(0.0, 0.0)] + [
        (math.cos(math.tau * n / max(1, count - 1)) * 200, math.sin(math.tau * n / max(1, count - 1)) * 150)
        for n in range(count - 1)
    ]
    for round_number in range(ROUNDS):
        heat = 60 * (1 - round_number / ROUNDS)
        moves = [[0.0, 0.0] for _ in range(count)]
        for a in range(count):
            for b in range(a + 1, count):
                dx, dy = places[a][0] - places[b][0], places[a][1] - places[b][1]
                distance = math.hypot(dx, dy) or 0.01
                pull = min(2.0, 0.5 + 0.25 * links[a, b]) if (a, b) in links else (PULL_OF_MIDDLE if a == 0 else 0.0)
                force = ideal * ideal / distance - pull * distance * distance / ideal
                dx, dy = dx / distance * force, dy / distance * force
                moves[a][0] += dx
                moves[a][1] += dy
                moves[b][0] -= dx
                moves[b][1] -= dy
        for n in range(1, count):
            dx, dy = moves[n]
            length = math.hypot(dx, dy) or 0.01
            step = min(length, heat)
            places[n] = (places[n][0] + dx / length * step, places[n][1] + dy / length * step)
    return _fitted(places)


def _fitted(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    across = max((abs(x) for x, _ in places), default=0.0) or 1.0
    down = max((abs(y) for _, y in places), default=0.0) or 1.0
    wide, high = WIDTH / 2 - MARGIN_X, HEIGHT / 2 - MARGIN_Y
    return [(WIDTH / 2 + x / across * wide, HEIGHT / 2 + y / down * high) for x, y in places]


def drawn(user: str, people: Sequence[Person], together: Mapping[tuple[str, str], int]) -> Markup:
    """Return the picture; `together` counts the memories that name two people, by their ids."""
    places_of = {person.id: n + 1 for n, person in enumerate(people)}
    links = {(0, places_of[person.id]): 1 for person in people if person.relation}
    for (one, other), count in together.items():
        if one in places_of and other in places_of:
            a, b = sorted((places_of[one], places_of[other]))
            links[a, b] = count
    places = _placed(len(people) + 1, links)
    parts = [
        Markup('<svg class="graph" viewBox="0 0 {} {}" role="group" aria-label="{}">').format(
            WIDTH, HEIGHT, f"{len(people)} people and their links; the table below says the same in words"
        )
    ]
    for (a, b), count in sorted(links.items()):
        (x1, y1), (x2, y2) = places[a], places[b]
        parts.append(
            Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}" stroke-width="{}"/>').format(
                "relation" if a == 0 else "together", f"{x1:.0f}", f"{y1:.0f}", f"{x2:.0f}", f"{y2:.0f}", min(5, count)
            )
        )
    for a, b in sorted(links):  # after all lines, so that none runs through a word
        if a == 0:
            (x1, y1), (x2, y2) = places[a], places[b]
            parts.append(
                Markup('<text class="role" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                    f"{(x1 + 1.4 * x2) / 2.4:.0f}", f"{(y1 + 1.4 * y2) / 2.4 - 4:.0f}",
                    in_words(people[b - 1].relation, MOST_IN_RELATION),
                )
            )  # fmt: skip
    most = max((person.weight for person in people), default=1)
    for person, (x, y) in zip(people, places[1:], strict=True):
        radius = 7 + 9 * math.sqrt(person.weight / most)
        parts.append(
            Markup(
                '<a href="{}"><circle class="person" cx="{}" cy="{}" r="{}"/>'
                '<text x="{}" y="{}" text-anchor="middle">{}</text></a>'
            ).format(
                person.address,
                f"{x:.0f}",
                f"{y:.0f}",
                f"{radius:.1f}",
                f"{x:.0f}",
                f"{y + radius + 14:.0f}",
                in_words(person.name, MOST_IN_NAME),
            )
        )
    x, y = places[0]
    parts.append(
        Markup(
            '<circle class="self" cx="{0}" cy="{1}" r="18"/><text class="self" x="{0}" y="{2}" text-anchor="middle">{3}'
            "</text></svg>"
        ).format(f"{x:.0f}", f"{y:.0f}", f"{y + 34:.0f}", in_words(user, MOST_IN_NAME))
    )
    return Markup("").join(parts)
