"""Texts as rows of token ids: [CLS] text [SEP], or [CLS] first [SEP] second [SEP]."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import tokenizers

from memoryd.embedding.tokens import known_share

__all__ = [
    "MOST_PIECES",
    "WORD",
    "WordPiece",
    "after_ids",
    "are_known",
    "asked_ids",
    "pair_ids",
    "pieces_of",
    "whole_texts",
    "word_ids",
]

MOST_PIECES = 48  # of a statement; longer ones are not read
KNOWN = 0.5  # share of the letters; Latin has .83 to 1, Greek .3, other scripts nothing
MOST_BEFORE = 24  # of what was said before a sentence; the last ones are read
MOST_SAID = 64  # of a sentence
MOST_ASKED = 48  # of a question
MOST_ANSWER = 72  # of what may answer it
SHORT = 8  # of a sentence that is read after what was said before it: "Kiwi."
MOST_READ = 126  # of a text whose words are read; of a longer one the beginning
CHARACTERS = 12  # a piece has fewer: so that no one tokenises a book to find that it is too long

Pair = tuple[str, str]
LOWER, FIRST, INSIDE = 0, 1, 2
WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:^|[.!?…:\n]|[\"“(])\s*$")
_BEFORE = 4  # characters by which it is seen that a sentence begins


class WordPiece(NamedTuple):
    """A word of a text, and the place of its first piece in the row of ids."""

    start: int
    end: int
    piece: int
    case: int
    """LOWER, or with a capital FIRST in a sentence, or INSIDE one: the tokens do not tell."""


def whole_texts(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a tokenizer that neither pads nor cuts."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def pieces_of(tokenizer: tokenizers.Tokenizer, texts: Sequence[str], *, most: int) -> list[list[int] | None]:
    """Return the word pieces of texts, without special ones; None for a text that is too long, or has none."""
    short = [text if len(text) <= CHARACTERS * most else "" for text in texts]
    found = [item.ids for item in tokenizer.encode_batch(short, add_special_tokens=False)]
    return [ids if 0 < len(ids) <= most else None for ids in found]


def are_known(tokenizer: tokenizers.Tokenizer, texts: Sequence[str]) -> list[bool]:
    """Return for each text whether the vocabulary has its words, and not letters alone as of most scripts but Latin."""
    unknown = tokenizer.token_to_id("[UNK]")
    cut = [text[: CHARACTERS * MOST_PIECES] for text in texts]
    return [
        known_share(text, encoding.offsets, [piece == unknown for piece in encoding.ids]) >= KNOWN
        for text, encoding in zip(cut, tokenizer.encode_batch(cut, add_special_tokens=False), strict=True)
    ]


def pair_ids(tokenizer: tokenizers.Tokenizer, pairs: Sequence[Pair]) -> list[list[int] | None]:
    """Return the token ids of pairs of statements; None where one of the two is too long."""
    begin, end = tokenizer.encode("").ids
    pieces = pieces_of(tokenizer, [text for pair in pairs for text in pair], most=MOST_PIECES)
    return [
        None if first is None or second is None else [begin, *first, end, *second, end]
        for first, second in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def asked_ids(tokenizer: tokenizers.Tokenizer, pairs: Sequence[Pair], *, cut: bool = False) -> list[list[int] | None]:
    """
    Return the token ids of questions with a text each; None where the text or the question is too long.

    `cut`: of a long question the end, where what is asked stands as a rule.
    """
    begin, end = tokenizer.encode("").ids
    asked = [question[-CHARACTERS * MOST_ASKED :] for question, _ in pairs]
    whole = [encoding.ids for encoding in tokenizer.encode_batch(asked, add_special_tokens=False)]
    questions = [ids[-MOST_ASKED:] for ids in whole]
    are_long = [
        len(ids) > MOST_ASKED or part != question for ids, part, (question, _) in zip(whole, asked, pairs, strict=True)
    ]
    pieces = pieces_of(tokenizer, [text for _, text in pairs], most=MOST_ANSWER)
    return [
        None if ids is None or not question or (is_long and not cut) else [begin, *question, end, *ids, end]
        for question, ids, is_long in zip(questions, pieces, are_long, strict=True)
    ]


def after_ids(tokenizer: tokenizers.Tokenizer, said: Sequence[Pair]) -> list[list[int] | None]:
    """
    Return the token ids of sentences; before a short one stands the end of what was said before it.

    Of a longer one what was said before tells nothing more (measured). None where a sentence is too long.
    """
    begin, end = tokenizer.encode("").ids
    pieces = pieces_of(tokenizer, [sentence for _, sentence in said], most=MOST_SAID)
    is_short = [ids is not None and len(ids) <= SHORT for ids in pieces]
    befores = [
        before[-CHARACTERS * MOST_BEFORE :] if short else "" for (before, _), short in zip(said, is_short, strict=True)
    ]
    context = [encoding.ids[-MOST_BEFORE:] for encoding in tokenizer.encode_batch(befores, add_special_tokens=False)]
    return [
        None if ids is None else [begin, *before, end, *ids, end] if before else [begin, *ids, end]
        for before, ids in zip(context, pieces, strict=True)
    ]


def word_ids(tokenizer: tokenizers.Tokenizer, texts: Sequence[str]) -> list[tuple[list[int], list[WordPiece]]]:
    """Return the token ids of texts, and their words; of a long text those at its beginning."""
    begin, end = tokenizer.encode("").ids
    found = []
    for text, encoding in zip(
        texts, tokenizer.encode_batch([text[: CHARACTERS * MOST_READ] for text in texts], add_special_tokens=False),
        strict=True,
    ):  # fmt: skip
        pieces = {start: n for n, (start, _) in reversed(list(enumerate(encoding.offsets[:MOST_READ], 1)))}
        words = [
            WordPiece(*match.span(), pieces[match.start()], _case(text, match))
            for match in WORD.finditer(text)
            if match.start() in pieces
        ]
        found.append(([begin, *encoding.ids[:MOST_READ], end], words))
    return found


def _case(text: str, word: re.Match[str]) -> int:
    if not word.group()[0].isupper():
        return LOWER
    return FIRST if _BEGINS.search(text, max(0, word.start() - _BEFORE), word.start()) else INSIDE
