"""
What sums up the messages that have left a thread's prompts: by a language model, or by rules an extract of them.

The extract has the turns that are most like all of them together, by the vectors of the model in use, and not like
each other. A summary that someone set by call is never touched.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from memoryd.domain.conversation.threads import ThreadKey, change_thread
from memoryd.domain.ports import Ports
from memoryd.embedding.base import Embedder
from memoryd.errors import ThreadNotFound, Unavailable
from memoryd.knowledge.grammar.sentences import is_filler
from memoryd.knowledge.grammar.words import value_of
from memoryd.learning.grounding import sums_up
from memoryd.learning.language_model import LanguageModel
from memoryd.llm.replies import text_in_reply
from memoryd.model.caller import Caller
from memoryd.model.conversation import Message, Role, Session, Thread
from memoryd.model.recalled_text import without_recalled
from memoryd.store.conversations import MessageSelector
from memoryd.turns import in_turns

__all__ = ["BY_RULES", "PROMPT", "extract_of", "sum_up", "wants_summary"]

PROMPT = "summary.v1"
BY_RULES = "rules"
MOST_READ = 300  # messages that are looked at: the last of those that have left the prompts
MOST_ASKED = 60  # a model reads so many at once
MOST_OF_TURN = 1_000  # characters of a turn that are compared, or shown to a model
MOST_LINES = 8  # of an extract
LINE = 240  # characters of a line
MOST_OF_SUMMARY = 4_000  # characters that a model may write
MOST_WORDS = 8_192  # the commonest, by which turns are compared where there are no vectors
LIKE_ANOTHER = 0.5  # weight of how like a turn is one that is taken already
LEAST_OF_HOST = 4  # messages of the host's, for a summary that is of them alone
_SCHEMA = {
    "type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"],
    "additionalProperties": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message as it may stand in a summary."""

    message: Message
    said: str

    @property
    def speaker(self) -> str:
        """Who said it: the name that its door vouches for, as contexts show it."""
        message = self.message
        if message.scope.user_id is not None:
            return message.name or message.role.value
        return message.as_memory(most=0).narrator or message.role.value


def wants_summary(thread: Thread) -> bool:
    """Whether messages have left the prompts of a thread that no summary covers, and no one sums it up by call."""
    by_call = bool(thread.summary) and not thread.summary_by
    return thread.view_seq > thread.summed_up_seq and not (by_call and thread.summed_up_seq)


async def sum_up(thread: Thread, model: LanguageModel | None, ports: Ports, *, now: datetime) -> bool:
    """Sum up what has left the prompts of a thread; return whether there is a new summary."""
    policy = ports.policy.of(thread.agent_id)
    if not wants_summary(thread) or not policy.enabled:
        return False
    cleared = 0 if thread.summary else thread.summed_up_seq  # what someone has cleared is not summed up again
    first = max(cleared, thread.view_seq - MOST_READ)
    read = MessageSelector(
        owner=thread.owner, thread_id=thread.id, limit=MOST_READ, before=thread.view_seq + 1, after=first,
        is_from_end=True,
    )  # fmt: skip
    messages = await ports.store.conversations.messages(read)
    turns = _trusted([turn for message in messages if (turn := _turn(message)) is not None])
    if not turns:
        await _noted(thread, replace(thread, summary_seq=thread.view_seq), (), ports, now)
        return False
    trust = min((turn.message.trust for turn in turns), key=lambda candidate: candidate.weight)
    if thread.summary and thread.summary_trust.outranks(trust):
        return False
    if thread.summary_seq >= thread.view_seq and not trust.outranks(thread.summary_trust):
        return False  # of what has left the prompts too little is of higher trust than who set or cleared it
    known = replace(thread, summary="", summary_seq=0) if trust.outranks(thread.summary_trust) else thread
    text, by = await _written(known, turns, model, ports.embedder)
    if ports.guards.secrets([text]):
        return False
    summed_up = replace(
        thread, summary=text, summary_seq=thread.view_seq, summary_time=now, summary_trust=trust, summary_by=by
    )
    return await _noted(thread, summed_up, [turn.message for turn in turns], ports, now)


async def _noted(thread: Thread, new: Thread, read: Sequence[Message], ports: Ports, now: datetime) -> bool:
    """Write a summary down, unless something that was read for it is gone; return whether it was written."""

    async def change(known: Thread) -> tuple[Thread, tuple[Session, ...], bool]:
        if not wants_summary(known) or known.view_seq < thread.view_seq or known.create_time != thread.create_time:
            return known, (), False
        places = {(thread.id, message.seq) for message in read}
        still = await ports.store.conversations.heads(MessageSelector(owner=thread.owner, places=places))
        if len(still) < len(places):
            return known, (), False
        changed = replace(
            known, summary=new.summary, summary_seq=new.summary_seq, summary_time=new.summary_time,
            summary_trust=new.summary_trust, summary_by=new.summary_by, summary_author="",
            summary_grant_id="",
        )  # fmt: skip
        return changed, (), True

    caller = Caller(thread.agent_id, thread.scope.user_id, thread.scope.chat_id)
    try:
        key = ThreadKey(thread.id, shared=thread.scope.chat_id is not None)
        return await change_thread(key, caller, ports, change, now=now)
    except ThreadNotFound:
        return False


def _turn(message: Message) -> _Turn | None:
    """Return a message as it may stand in a summary; None for what a tool or the system says, and for fillers."""
    if message.role not in {Role.USER, Role.ASSISTANT}:
        return None
    text = " ".join(without_recalled(message.content).split())
    return None if not text or is_filler(text) else _Turn(message, text)


def _trusted(turns: Sequence[_Turn]) -> Sequence[_Turn]:
    """Return what came through the door of highest trust, if that is enough; else all of it."""
    highest = max((turn.message.trust.weight for turn in turns), default=0)
    best = [turn for turn in turns if turn.message.trust.weight == highest]
    return best if len(best) >= LEAST_OF_HOST else turns


async def _written(
    thread: Thread, turns: Sequence[_Turn], model: LanguageModel | None, embedder: Embedder
) -> tuple[str, str]:
    """Return a summary, and who wrote it: the model, or where it gives none that can be used, the rules."""
    if model is not None:
        text = await _by_model(thread, turns, model)
        if text:
            return text, model.model
    return await extract_of([(turn.speaker, turn.said) for turn in turns], _vectors(embedder)), BY_RULES


async def _by_model(thread: Thread, turns: Sequence[_Turn], model: LanguageModel) -> str:
    """Return the model's summary of the one before and the turns since; empty where there is none that can be used."""
    before = thread.summary
    since = [turn for turn in turns if turn.message.seq > thread.summary_seq] or turns
    for begin in range(0, len(since), MOST_ASKED):
        part = since[begin : begin + MOST_ASKED]
        lines = [json.dumps({"summary so far": before}, ensure_ascii=False)]
        lines += [
            json.dumps({"speaker": turn.speaker, "text": turn.said[:MOST_OF_TURN]}, ensure_ascii=False) for turn in part
        ]
        try:
            reply = await model.ask(PROMPT, "\n".join(lines), _SCHEMA)
        except Unavailable:
            return ""
        text = text_in_reply(reply.text, "summary")
        read = f"{before}\n{' '.join(f'{turn.speaker} {turn.said}' for turn in part)}"
        if len(text) > MOST_OF_SUMMARY or not sums_up(text, read):
            return ""
        before = text
    return before


Vectors = Callable[[Sequence[str]], Awaitable[np.ndarray | None]]


def _vectors(embedder: Embedder) -> Vectors:
    async def made(texts: Sequence[str]) -> np.ndarray | None:
        embedded = await embedder.documents(list(texts), caller="learning", background=True)
        vectors = [known.vector for known in embedded if known is not None]
        return np.stack(vectors) if len(vectors) == len(texts) else None

    return made


async def extract_of(turns: Sequence[tuple[str, str]], vectors: Vectors) -> str:
    """
    Return the lines of an extract: of (speaker, text) the most central ones, in their order.

    Central is what has a high cosine to the mean of all; each turn that is taken makes those like it less so (maximal
    marginal relevance, Carbonell and Goldstein 1998). Without vectors likeness is the share of words.
    """
    texts = [text[:MOST_OF_TURN] for _, text in turns]
    made = await vectors(texts)
    alike = await _of_words(texts) if made is None else made @ made.T
    taken = _central(np.asarray(alike, dtype=np.float64))
    lines = [f"- {turns[n][0]}: {_cut(turns[n][1])}" for n in sorted(taken)]
    return "\n".join([f"Extract of {len(turns)} earlier messages:", *lines])


def _central(alike: np.ndarray) -> list[int]:
    """Return which rows of a matrix of likeness are most central, each unlike the others."""
    central = alike.mean(axis=1)
    worst = np.zeros(len(alike))
    taken: list[int] = []
    while len(taken) < min(MOST_LINES, len(alike)):
        scores = central - LIKE_ANOTHER * worst
        scores[taken] = -np.inf
        taken.append(int(scores.argmax()))
        worst = np.maximum(worst, alike[taken[-1]])
    return taken


async def _of_words(texts: Sequence[str]) -> np.ndarray:
    """Return how like texts are by the words that they share (Jaccard), shape (n, n)."""
    words = [value_of(text) async for text in in_turns(texts)]
    return await asyncio.to_thread(_shares, words)


def _shares(words: Sequence[frozenset[str]]) -> np.ndarray:
    counts = Counter(word for some in words for word in some)
    columns = {word: n for n, (word, count) in enumerate(counts.most_common(MOST_WORDS)) if count > 1}
    holds = np.zeros((len(words), len(columns)), dtype=np.float32)
    for row, some in zip(holds, words, strict=True):
        row[[columns[word] for word in some if word in columns]] = 1
    both = holds @ holds.T
    sizes = np.array([len(some) for some in words], dtype=np.float32)
    shares: np.ndarray = both / np.maximum(1, sizes[:, None] + sizes[None, :] - both)
    np.fill_diagonal(shares, 1)
    return shares


def _cut(text: str) -> str:
    return text if len(text) <= LINE else f"{text[:LINE].rstrip()}…"
