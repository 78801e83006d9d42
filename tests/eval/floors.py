"""What a floor of similarity keeps and leaves out: of what answers a question, and of what another user's store has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_client import Filter, Kind, MemoryClient

from memoryd.model.limits import MAX_QUERY_BYTES
from tests.eval.drafts import cut

__all__ = ["tell_floors"]

FLOORS = (0.2, 0.25, 0.3, 0.35, 0.4)
FOUND = 10  # hits of a question, as many as a context takes
MESSAGES = Filter(kinds=frozenset({Kind.EPISODE}))


def tell_floors(data: Any, clients: Mapping[str, MemoryClient], ids: Mapping[str, Mapping[str, str]]) -> None:
    """Print, for each floor, what is kept of the first hits: evidence, the rest, and hits in another user's store."""
    gold: list[float] = []
    rest: list[float] = []
    foreign: list[float] = []
    names = list(clients)
    for question in (one for one in data.questions if one.gold):
        text = cut(question.query, MAX_QUERY_BYTES)
        for hit in clients[question.conv].search(text, limit=FOUND, filter=MESSAGES).hits:
            known = ids[question.conv][hit.memory.id] in set(question.gold)
            (gold if known else rest).append(hit.similarity)
        other = names[(names.index(question.conv) + 1) % len(names)]
        foreign += [hit.similarity for hit in clients[other].search(text, limit=FOUND, filter=MESSAGES).hits]
    print("| floor of the cosine | evidence kept | other hits kept | hits in another user's store kept |")
    print("|---:|---:|---:|---:|")
    for floor in FLOORS:
        shares = [sum(one >= floor for one in some) / len(some) for some in (gold, rest, foreign)]
        print(f"| {floor} | {' | '.join(f'{share:.3f}' for share in shares)} |")
