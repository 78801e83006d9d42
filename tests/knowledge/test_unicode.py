"""No text makes a reader fail: every number, letter and mark of Unicode, in the sentences that are read for values."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.context.render import memory_line
from memoryd.entities.directory import Directory
from memoryd.entities.finders import RegexFinder, find_entities
from memoryd.entities.lookup import meant_by, near
from memoryd.entities.resolve import mentions_of
from memoryd.index.analysis import analyse, analyse_query
from memoryd.knowledge.comparison.comparison import compare, speaks_of_itself
from memoryd.knowledge.grammar.names import is_first_name, is_plain, may_be_one, short_forms
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.knowledge.grammar.words import telling_words, words_of
from memoryd.knowledge.read_statement import Reading
from memoryd.knowledge.secrets import SecretDetector
from memoryd.knowledge.statement.reader import statement_of
from memoryd.model.entity import EntityType
from memoryd.model.validation import fold
from tests.builders import NOW, memory

SENTENCES = (
    "my age is {0}", "I am {0}0 years old", "I weigh {0} kg", "I have {0} cats", "My birthday is on {0} May {0}",
    "the meeting is at {0}:{0} pm", "My wife {0}a is {0}", "{0}a{0} lives in {0}b", "{0}'s email is {0}@{0}.com",
    "my {0} is {0}", "I pay {0}$ a month", "@{0} is {0}a", "call {0}a {0}b", "my favorite {0} is {0}", "{0}{0}{0}",
    "I moved from {0} to {0}", "my password is {0}a1!{0}", "I no longer like {0}", "next {0}", "A{0} is my boss",
)  # fmt: skip
OLD = [
    Reading(text)
    for text in ("my age is 30", "I weigh 80 kg", "my favorite color is red", "I live in Berlin", "my wife Anna is 5")
]
SECRETS = SecretDetector()


def characters(*classes: str, step: int = 1) -> list[str]:
    found = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] in classes]
    odd = [c for c in found if len(fold(c)) != 1 or len(c.lower()) != 1 or len(c.upper()) != 1]
    return [*found[::step], *odd]


def read(text: str) -> None:
    """Give a text to everything that reads texts."""
    said = Reading(text)
    words_of(text), statement_of(text), telling_words(text), has_relative_time(text), speaks_of_itself(said)
    analyse(text), analyse_query(text)
    finders = (RegexFinder(),)
    find_entities(text, finders)
    people = Directory()
    made = memory(text, mentions=mentions_of(text, [text[:40]], people, finders, lambda: "e" * 26))
    people.add(made)
    for root in people.roots:
        assert isinstance(people.type(root), EntityType)
        people.aliases(root), people.relations(root), near(people.name(root), people)
    meant_by(text[:40], people), near(text[:40], people)
    if fold(text):
        first = fold(text).split()[0]
        short_forms(first), is_first_name(first), may_be_one(text, "Anna")
    is_plain(text), memory_line(made.shown(NOW)).text, SECRETS.find(text)
    for old in OLD:
        compare(said, old, similarity=0.9), compare(old, said, similarity=0.9)
    compare(said, Reading(text), similarity=0.9)


CLASSES = [(("N",), 1), (("M",), 5), (("L",), 250), (("S", "P"), 10), (("Z", "C"), 2500)]


@pytest.mark.parametrize(("classes", "step"), CLASSES)
def test_every_class_of_characters_can_be_read(classes, step):
    some = characters(*classes, step=step)
    for n, character in enumerate(some):
        read(SENTENCES[n % len(SENTENCES)].format(character))
    if classes == ("N",):  # what looks like a number and is none, in every sentence
        for character in [c for c in some if c.isdigit() and not c.isdecimal()]:
            for sentence in SENTENCES:
                read(sentence.format(character))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.sampled_from(SENTENCES))
def test_any_text_can_be_read(text, sentence):
    read(text)
    read(sentence.format(text[:9]))
