"""
`make eval DATA=folder`: retrieval scored through a real daemon and the real client.

The folder holds `eval_retrieval.py` and its data sets; nothing of them is part of this project. Every conversation is a
user, every turn a memory of kind EPISODE, with `--through messages` a message of a thread; every fact is a FACT. Its
date becomes event_time, its speaker source.speaker,
and what the loader wrote of both in front of the text is taken off again, as memoryd indexes them by itself. Of facts
that are told to contradict each other, it is told what was retired and what was contested.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from memory_client import Draft, Filter, Kind, MemoryClient, Source

from memoryd.model.limits import MAX_BATCH, MAX_CONTENT_BYTES, MAX_QUERY_BYTES, MAX_SEARCH_LIMIT
from tests.eval.drafts import cut, happened, words_of
from tests.eval.local import FACTS
from tests.eval.scorer import scorer_of
from tests.eval.talk import ask_messages, feed_messages, learn, tell_facts, tell_neighbours, until_embedded
from tests.support import running

EVERY_SET = (
    "locomo", "beam-100k", "lifebench", "cranfield", "precisionmembench", "letta-core", "letta-update",
)  # fmt: skip


def _draft(item: Any, kind: Kind, counts: dict[str, int]) -> Draft:
    text, meta = words_of(item), item.meta
    content = cut(text, MAX_CONTENT_BYTES)
    counts["cut"] += content != text
    return Draft(
        content=content if content.strip() else "-",
        kind=kind,
        key=item.id if kind is Kind.EPISODE else "",  # so that two turns of the same words stay two
        source=Source(speaker=str(meta.get("speaker") or ""), session_id=str(meta.get("session") or "")),
        event_time=happened(item),
    )


def _fill(memory: MemoryClient, items: list[Any], kind: Kind, counts: dict[str, int]) -> dict[str, str]:
    """Add memories; return memory id → the data set's id."""
    known: dict[str, str] = {}
    for start in range(0, len(items), MAX_BATCH):
        some = items[start : start + MAX_BATCH]
        for item, result in zip(some, memory.add_batch([_draft(i, kind, counts) for i in some]), strict=True):
            if result.memory is None:  # a message of a data set may hold what looks like a password
                counts["rejected"] += 1
            else:
                known[result.memory.id] = item.id
    return known


def _judged(memory: MemoryClient, items: list[Any], ids: dict[str, str]) -> None:
    """Print what became of facts that later ones contradict, and of those that nothing contradicts."""
    contradicted = {old for item in items for old in item.meta.get("supersedes", ())}
    if not contradicted:
        return
    states = {
        ids[m.id]: (m.supersede_time is not None, bool(m.contested_with))
        for m in memory.pages(page_size=1000, filter=Filter(include_superseded=True))
        if m.id in ids
    }
    olds = [item.id for item in items if item.id in states and not item.meta.get("supersedes")]
    for title, some in (
        ("contradicted", [one for one in olds if one in contradicted]),
        ("not contradicted", [one for one in olds if one not in contradicted]),
    ):
        retired = sum(states[one][0] for one in some) / len(some)
        contested = sum(states[one][1] for one in some) / len(some)
        print(f"  of {len(some)} facts {title}: {retired:.3f} superseded, {contested:.3f} contested")


def _tell_all(found: dict[str, dict[str, Any]]) -> None:
    """Print one table of the headline questions of every set."""
    print("| set | questions | R@5 | R@10 | nDCG@10 | MRR | fresh > stale | search p50, 100 hits |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, report in found.items():
        figures = report["headline"]
        cells = [
            f"{figures[key]:.3f}" if key in figures else "–" for key in ("R@5", "R@10", "nDCG@10", "MRR", "fresh>stale")
        ]
        print(f"| {name} | {figures['n']} | {' | '.join(cells)} | {report['latency_ms']['p50']:.1f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds eval_retrieval.py")
    parser.add_argument(
        "--through", choices=("memories", "messages"), default="memories", help="feed dialogues as memories or messages"
    )
    parser.add_argument("--sets", default="locomo", help="comma-separated names of its data sets; all: every one")
    args = parser.parse_args()
    scorer = scorer_of(args.data)
    folder = Path(tempfile.mkdtemp(prefix="memoryd-eval-"))
    with running(folder, config="[learning]\nwait_s = 86400\n") as daemon:
        found: dict[str, dict[str, Any]] = {}
        for name in EVERY_SET if args.sets == "all" else args.sets.split(","):
            data = scorer.load(name)
            kind = Kind.FACT if name.partition("+")[0] in FACTS else Kind.EPISODE
            wanted = Filter(kinds=frozenset({kind}))
            ids: dict[str, dict[str, str]] = {}
            counts = {"cut": 0, "rejected": 0}
            clients = {}
            for n, (conversation, items) in enumerate(data.memories.items()):
                clients[conversation] = MemoryClient(daemon.endpoint, user_id=f"{name}-{n}", timeout_s=600)
                if args.through == "messages":
                    feed_messages(clients[conversation], items)
                else:
                    ids[conversation] = _fill(clients[conversation], items, kind, counts)
                print(f"{name}: {n + 1}/{len(data.memories)} conversations stored", end="\r", file=sys.stderr)

            def ask(conversation: str, query: str, k: int, clients=clients) -> list[str]:
                return ask_messages(clients[conversation], query, k)

            if args.through == "messages":
                until_embedded(next(iter(clients.values())))
                scorer.print_report(scorer.evaluate(data, ask))
                tell_neighbours(data, clients)
                print(f"{learn(next(iter(clients.values())))} facts learnt from the first conversation")
                tell_facts(data, clients)
                continue

            def search(conversation: str, query: str, k: int, clients=clients, ids=ids, wanted=wanted) -> list[str]:
                text = cut(query, MAX_QUERY_BYTES)
                hits = clients[conversation].search(text, limit=min(k, MAX_SEARCH_LIMIT), filter=wanted).hits
                return [ids[conversation][hit.memory.id] for hit in hits]

            found[name] = scorer.evaluate(data, search)
            scorer.print_report(found[name])
            if counts["cut"]:
                print(f"{counts['cut']} texts were longer than {MAX_CONTENT_BYTES} bytes and were cut\n")
            if counts["rejected"]:
                print(f"{counts['rejected']} texts were refused as credentials\n")
            for conversation, items in data.memories.items():
                _judged(clients[conversation], items, ids[conversation])
            for client in clients.values():
                client.close()
    _tell_all(found)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
