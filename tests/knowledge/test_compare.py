"""What the words of two statements say of each other: pairs.txt, and the rules one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.embedding.packaged import builtin_encoder
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge import read_statement
from memoryd.knowledge.comparison import comparison
from memoryd.knowledge.comparison.comparison import may_stand_before
from memoryd.knowledge.comparison.rules import APART, Finding, Relation
from memoryd.knowledge.grammar.words import words_of
from memoryd.knowledge.read_statement import Reader, Reading
from memoryd.knowledge.statement.reader import statement_of

LABELS = {"changed": Relation.CHANGED, "same": Relation.SAME, "doubt": Relation.DOUBTFUL, "both": Relation.APART}
WORDS = {relation: label for label, relation in LABELS.items()}


def compare(new: str, old: str, **more) -> Finding:
    return comparison.compare(Reading(new), Reading(old), **more)


def pairs():
    label = ""
    for line in (Path(__file__).parent / "pairs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            label = line.strip("[]")
        elif line and not line.startswith("#"):
            text, _, answer = line.removeprefix("!").partition("=>")
            old, new = (part.strip() for part in text.split("|"))
            yield label, old, new, answer.strip() or label


@pytest.fixture(scope="module")
def similarity():
    encoder = builtin_encoder()
    texts = sorted({text for _, old, new, _ in pairs() for text in (old, new)})
    vectors = {}
    for n in range(0, len(texts), 16):
        some = texts[n : n + 16]
        vectors |= dict(zip(some, encoder.encode(some, query=False), strict=True))
    return lambda one, other: float(vectors[one] @ vectors[other])


def test_every_pair_is_answered_as_the_table_says_its_misses_too(similarity):
    answers = {
        (old, new): WORDS[compare(new, old, similarity=similarity(old, new)).relation] for _, old, new, _ in pairs()
    }

    assert {(old, new): expected for _, old, new, expected in pairs()} == answers


def test_what_is_known_of_the_older_one_only_saves_work(similarity):
    for _, old, new, _ in pairs():
        attributes = [claim.attribute for claim in statement_of(old).claims]
        near = similarity(old, new)
        assert compare(new, old, similarity=near) == compare(new, old, similarity=near, attributes=attributes)


def test_what_somebody_says_of_themselves_is_compared_with_nothing_of_another(similarity):
    for old, new in (
        ("I live in Rome", "I live in Oslo"),
        ("I like tea", "I like tea"),
        ("my car is red", "my car is blue"),
    ):
        assert Relation.APART is compare(new, old, similarity=0.9, same_speaker=False).relation
    due = compare("The deadline is Friday", "The deadline is Monday", similarity=0.9, same_speaker=False)
    assert Relation.CHANGED is due.relation


def test_what_tells_of_the_past_alone_takes_nobodys_place():
    for new, old in (
        ("Anna used to live in Rome", "Anna lives in Bonn"),
        ("Formerly the code was 4711", "The code is 1234"),
        ("Anna's old number was 555", "Anna's number is 777"),
        ("My ex wife is Lea", "My wife is Mia"),
        ("Anna likes Ben", "Ben likes Anna"),
    ):
        assert not may_stand_before(new, old)
    for new, old in (
        ("I used to work at Nokia, now I work at Ericsson", "I work at Nokia"),
        ("Anna is 31 years old", "Anna is 30 years old"),
        ("Previously used TSLint for linting. Replaced by ESLint.", "Uses TSLint for linting."),
        ("My ex lives in Rome", "My ex lives in Oslo"),
        ("I'm used to getting up at 5", "I'm used to getting up at 7"),
        ("The baby is 3 months old", "The baby is 2 months old"),
        ("Anna lives in Rome", "Anna lives in Bonn"),
    ):
        assert may_stand_before(new, old)


def test_the_table_is_as_large_as_it_claims():
    found = list(pairs())

    assert len(found) >= 600
    assert sum(label == "both" for label, *_ in found) * 2 >= len(found) * 0.9
    assert len({(old, new) for _, old, new, _ in found}) == len(found)
    assert sum(label != answer for label, _, _, answer in found) <= len(found) // 20


def test_what_was_read_is_kept_for_one_owner_until_something_of_theirs_is_erased():
    mine, theirs = ScopeIndex(), ScopeIndex()
    text = "my favorite color is red"
    assert mine.reader.read(text) is mine.reader.read(text)
    assert mine.reader.read(text) is not theirs.reader.read(text)
    mine.erase({"a" * 26})
    assert (0, 1) == (len(mine.reader), len(theirs.reader))


def test_a_text_is_not_read_again_for_a_pair_that_shares_no_word_until_something_of_its_owner_is_erased(monkeypatch):
    read = []
    monkeypatch.setattr(read_statement, "words_of", lambda text: read.append(text) or words_of(text))
    reader = Reader()
    texts = [f"the neighbour keeps bees number{n}" for n in range(2 * read_statement.MOST_KEPT)]
    for text in texts:
        assert {"neighbor", "keep", "bee", text.split()[-1]} == {*reader.read(text).stems}
    new = reader.read("coffee tastes bitter")
    for text in texts:
        assert comparison.compare(new, reader.read(text), similarity=0.5, attributes=()) is APART
    assert [*texts, new.text] == read
    assert 200 * len(texts) < reader._maker.stems.currsize <= read_statement.MOST_BYTES_OF_STEMS
    readings = reader.nbytes - reader._maker.stems.currsize
    assert readings <= read_statement.MOST_KEPT * (
        read_statement.BYTES_A_READING + 5 * read_statement.BYTES_A_WORD
    )  # and none of the first
    assert readings >= read_statement.MOST_KEPT * read_statement.BYTES_A_READING
    reader.forget()
    assert 0 == reader.nbytes
    comparison.compare(new, reader.read(texts[0]), similarity=0.5, attributes=())
    assert texts[0] == read[-1]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Allergic to nuts", "Not allergic to nuts"),
        ("Prefers window seats", "No longer prefers window seats"),
        ("The user's wife Sarah lives in Oslo", "The user's wife Sarah died"),
        ("Has a piano", "Has sold the piano"),
    ],
)
def test_what_somebody_says_of_themselves_without_i_is_of_nobody_else(older, newer):
    assert compare(newer, older, similarity=0.7, same_speaker=False).relation is Relation.APART
