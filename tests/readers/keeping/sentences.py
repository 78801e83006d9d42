"""The sentences that the keeping reader is tuned and judged with: of dialogues of voices, as the daemon reads them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryd.embedding.readers.keeping import NONE
from memoryd.knowledge.extraction.talk import sentences_after
from memoryd.knowledge.extraction.worth import bare_words
from tests.readers.voices import Kept, Turn, Voice

__all__ = ["CLEAR", "Said", "clearness", "sentences_of", "statements_of"]

CLEAR = {"clear": 1.0, "doubtful": 0.5, "unclear": 0.0, "": -1.0}
"""What is wanted of the reader where somebody has labelled whether a sentence is understood by itself."""
EVERY = 6  # statement of a store
SHARE = 0.6  # of the words of a sentence that what is kept of it has at least


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and what was said before it."""

    before: str
    sentence: str
    label: str
    """What it is worth; empty: it is worth keeping, as whatever."""


def sentences_of(known: Iterable[Voice]) -> Iterator[Said]:
    """Yield the sentences of people in the dialogues of some voices."""
    for voice in known:
        before = ""
        for turn in voice.dialogue:
            if turn.day is not None:
                before = ""
            if turn.who != "assistant":
                yield from _of_turn(turn, before)
            before = turn.text


def statements_of(known: Iterable[Voice]) -> Iterator[Said]:
    """Yield some statements of the stores of voices: plainly told, and worth keeping as whatever they are."""
    for voice in known:
        for one in voice.store[::EVERY]:
            yield Said("", one.text, "")


@functools.cache
def clearness() -> Mapping[str, str]:
    """Return by sentence whether somebody understood it who read nothing else: clear, doubtful or unclear."""
    lines = (Path(__file__).parent / "alone.tsv").read_text(encoding="utf-8").splitlines()
    return {sentence: label for label, _, sentence in (line.partition("\t") for line in lines)}


def _of_turn(turn: Turn, before: str) -> Iterator[Said]:
    for sentence in sentences_after(turn.text, before):
        kept = next((one for one in turn.kept if _is_one(one, sentence.text)), None)
        yield Said(sentence.before, sentence.text, NONE if kept is None else kept.label)


def _is_one(kept: Kept, sentence: str) -> bool:
    """Whether what is kept is a sentence, or most of it, or holds it."""
    words, wanted = bare_words(sentence), bare_words(kept.sentence)
    both = len(words & wanted)
    return bool(words and wanted) and (both == len(words) or both >= max(SHARE * len(words), SHARE * len(wanted)))
