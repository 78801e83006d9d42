"""Two texts as one row of token ids: [CLS] first [SEP] second [SEP]."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers

__all__ = ["MOST_PIECES", "after_ids", "pair_ids", "pieces_of", "whole_texts"]

MOST_PIECES = 48  # of a statement; longer ones are not read
MOST_BEFORE = 24  # of what was said before a sentence; the last ones are read
MOST_SAID = 64  # of a sentence
SHORT = 8  # of a sentence that is read after what was said before it: "Kiwi."
CHARACTERS = 12  # a piece has fewer: so that nobody tokenises a book to find that it is too long

Pair = tuple[str, str]


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


def pair_ids(tokenizer: tokenizers.Tokenizer, pairs: Sequence[Pair]) -> list[list[int] | None]:
    """Return the token ids of pairs of statements; None where one of the two is too long."""
    begin, end = tokenizer.encode("").ids
    pieces = pieces_of(tokenizer, [text for pair in pairs for text in pair], most=MOST_PIECES)
    return [
        None if first is None or second is None else [begin, *first, end, *second, end]
        for first, second in zip(pieces[::2], pieces[1::2], strict=True)
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
    context = [one.ids[-MOST_BEFORE:] for one in tokenizer.encode_batch(befores, add_special_tokens=False)]
    return [
        None if ids is None else [begin, *before, end, *ids, end] if before else [begin, *ids, end]
        for before, ids in zip(context, pieces, strict=True)
    ]
