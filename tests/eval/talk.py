"""Dialogues fed through AppendMessages and asked through SearchMessages: every conversation is a thread of a user."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_client import Filter, Kind, MemoryClient, MessageDraft, MessageSearch

from memoryd.model.limits import MAX_BATCH, MAX_QUERY_BYTES, MAX_SEARCH_LIMIT
from tests.eval.drafts import cut, happened, words_of

__all__ = ["ask_messages", "feed_messages", "learn", "tell_facts", "tell_neighbours", "until_embedded"]

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
FOUND = 10  # hits whose neighbours count as found too


def _draft(item: Any, n: int) -> MessageDraft:
    when = happened(item)
    return MessageDraft(
        content=words_of(item) or "-",
        name=str(item.meta.get("speaker") or ""),
        id=item.id,
        create_time=(when or BEGIN) + timedelta(seconds=n),  # a session has one date for all its turns
    )


def feed_messages(memory: MemoryClient, items: list[Any]) -> None:
    """Append every turn in order, each session under its key."""
    start = 0
    while start < len(items):
        session = items[start].meta.get("session")
        end = start
        while end < len(items) and end - start < MAX_BATCH and items[end].meta.get("session") == session:
            end += 1
        drafts = [_draft(item, start + n) for n, item in enumerate(items[start:end])]
        memory.append("dialogue", drafts, session_id=str(session or ""))
        start = end


def until_embedded(memory: MemoryClient) -> None:
    """Wait until every message has its vector."""
    while memory.server_info().unembedded_message_count:
        time.sleep(0.2)


def ask_messages(memory: MemoryClient, query: str, k: int) -> list[str]:
    """Return the ids of the turns that answer, best first, without neighbours."""
    asked = MessageSearch(text=cut(query, MAX_QUERY_BYTES), top_k=min(k, MAX_SEARCH_LIMIT), before=0, after=0)
    return [hit.message.id for hit in memory.search_messages(asked).hits]


def _found_beside(memory: MemoryClient, question: Any) -> float:
    """Return the share of a question's evidence among the first hits and the turns right beside them."""
    asked = MessageSearch(text=cut(question.query, MAX_QUERY_BYTES), top_k=FOUND, before=1, after=1)
    shown = {one.id for hit in memory.search_messages(asked).hits for one in (hit.message, *hit.before, *hit.after)}
    return len(shown & set(question.gold)) / len(set(question.gold))


def tell_neighbours(data: Any, clients: Mapping[str, MemoryClient]) -> None:
    """Print the share of evidence that is found where the turns right beside a hit count too."""
    for title, wanted in (("headline", data.headline), ("all", ())):
        asked = [one for one in data.questions if one.gold and (not wanted or one.category in wanted)]
        shares = [_found_beside(clients[one.conv], one) for one in asked]
        print(f"R@10 with one turn either side, {title}: {sum(shares) / len(shares):.3f} of {len(shares)} questions")


SAID = frozenset({Kind.EPISODE})
ALL = frozenset(kind for kind in Kind if kind is not Kind.REFLECTION)


def learn(memory: MemoryClient) -> int:
    """Learn from all that was said, as the daemon does by itself after a while; return how many facts are known."""
    run = memory.run_job("extraction")
    while memory.job_run(run.id).end_time is None:
        time.sleep(0.1)
    return sum(1 for _ in memory.pages(page_size=1000))


def _asked(memory: MemoryClient, query: str, kinds: frozenset[Kind]) -> list[tuple[str, ...]]:
    """Return, of each of the first hits, the messages that it is or comes from."""
    hits = memory.search(cut(query, MAX_QUERY_BYTES), limit=FOUND, filter=Filter(kinds=kinds)).hits
    return [tuple(one.memory.source.message_ids) or (one.memory.id,) for one in hits]


def tell_facts(data: Any, clients: Mapping[str, MemoryClient]) -> None:
    """Print what facts beside the messages change: a fact counts as the message that it comes from."""
    asked = [one for one in data.questions if one.gold and (not data.headline or one.category in data.headline)]
    found = {SAID: 0.0, ALL: 0.0}
    hits = twice = 0
    for question in asked:
        gold = set(question.gold)
        for kinds in found:
            rows = _asked(clients[question.conv], question.query, kinds)
            found[kinds] += len(gold.intersection(*[{one for row in rows for one in row}])) / len(gold)
            if kinds is ALL:
                hits += len(rows)
                twice += sum(any(set(row) & set(earlier) for earlier in rows[:n]) for n, row in enumerate(rows))
    print(
        f"R@10 of messages alone {found[SAID] / len(asked):.4f}, with what was learnt from them beside them"
        f" {found[ALL] / len(asked):.4f} ({len(asked)} questions); of {hits} hits {twice} say again what another says"
    )
