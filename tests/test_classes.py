"""A question for things of a class finds its members: of "What foods does she like?" a pie."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from memoryd.domain.retrieval.ranking import WEIGHTS
from memoryd.domain.retrieval.search import Asked, search
from memoryd.knowledge.grammar import questions
from memoryd.knowledge.grammar.questions import members_asked
from memoryd.model.results import Leg
from memoryd.model.trust import Trust
from tests.test_ranking import index_of, order, question_of, ranked_of, said

TABLE = tomllib.loads((Path(questions.__file__).parents[1] / "lexicon" / "classes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("question", "member"),
    [
        ("What foods does Audrey like?", "chicken pot pie"),
        ("What are Nate's favorite desserts?", "cheesecake"),
        ("Which pets do I have?", "turtle"),
        ("What kind of music do we listen to?", "jazz"),
        ("what outdoor activities has john done", "hiking"),
        ("Does Mel have any pets?", "hamster"),
        ("Do I have pets?", "hamster"),
        ("What's my favorite dessert?", "cheesecake"),
        ("Tell me the foods Audrey likes", "pizza"),
        ("Which of my friends' instruments is the oldest?", ""),
        ("What instruments does Tim play?", "piano"),
        ("What are the names of John’s pets?", "dog"),
        ("How many video games have I finished?", "minecraft"),
        ("What is my phone number?", ""),
        ("What is my job title?", ""),
        ("What did Melanie paint recently?", ""),
        ("What services did I book for the tour?", ""),
        ("What is my dog's name?", ""),
        ("Where do I live?", ""),
        ("I like foods of all kinds", ""),
        ("", ""),
        ("what " * 500, ""),
    ],
)
def test_a_question_asks_for_the_members_of_a_class_or_of_none(question, member):
    found = members_asked(question)
    assert member in found if member else not found


def test_the_table_is_as_large_as_it_claims_and_no_word_asks_for_two_classes():
    asked = Counter(word for words in TABLE for word in words.split())
    assert len(TABLE) >= 180
    assert sum(len(members.split("/")) for members in TABLE.values()) >= 10_000
    assert [] == [word for word, times in asked.items() if times > 1]
    assert [] == [words for words, members in TABLE.items() if members != members.lower()]


def of_class(question: str, *texts: str) -> dict[str, bool]:
    index = index_of(said(*texts))
    (pool,) = ranked_of(index, question).pools
    return dict(zip(texts, pool.of_class.tolist(), strict=True))


def test_what_tells_of_a_member_is_marked_and_what_holds_half_of_its_words_is_not():
    pie, pot, song = "I made a chicken pot pie", "I bought a pot for the fern", "I wrote a song"
    assert {pie: True, pot: False, song: False} == of_class("What foods does Ann make?", pie, pot, song)
    assert {pie: False, pot: False, song: False} == of_class("What did Ann make?", pie, pot, song)


def test_no_note_of_a_sandbox_is_lifted_where_anything_of_higher_trust_is():
    host, notes = said("Audrey likes armchairs"), said("a note of lasagna", "a note of pie", trust=Trust.SANDBOX)
    (pool,) = ranked_of(index_of([*host, *notes]), "What foods does Audrey like?").pools
    assert not pool.of_class.any()
    (pool,) = ranked_of(index_of(notes), "What foods does Audrey like?").pools
    assert pool.of_class.all()


def test_a_member_that_most_documents_hold_tells_nothing_apart():
    texts = [f"the pizza of day {n}" for n in range(20)]
    (pool,) = ranked_of(index_of(said(*texts, "a lasagna")), "What foods does Audrey like?").pools
    assert 1 == pool.of_class.sum()


def test_letters_of_another_alphabet_find_no_class_and_raise_nothing():
    for question in ("What c\u0131ties did I visit?", "What book\u017f do I have?", "WHAT F\u0130LMS do I like?"):
        assert () == members_asked(question)


def test_what_the_question_names_itself_marks_nothing():
    dog, cat = "the dog sleeps", "the cat sleeps"
    assert {dog: False, cat: True} == of_class("What pets does Ann have besides a dog?", dog, cat)


def test_a_member_stands_before_what_shares_as_many_words():
    texts = ["Audrey likes newspapers", "Audrey likes lasagna", "Audrey likes armchairs"]
    assert "Audrey likes lasagna" == order(index_of(said(*texts)), "What foods does Audrey like?")[0]


def test_a_hit_tells_that_it_was_found_by_its_class_and_what_that_weighs():
    index = index_of(said("Audrey likes lasagna", "Audrey likes armchairs"))
    question = question_of(index, "What foods does Audrey like?")
    found = {hit.memory.content: hit.legs for hit in search([index], Asked(question, 9, min_score=0.0), explain=True)}
    (leg,) = (leg for leg in found["Audrey likes lasagna"] if leg.leg is Leg.CLASS)
    assert (1.0, WEIGHTS.member) == (leg.score, leg.weight)
    assert Leg.CLASS not in {leg.leg for leg in found["Audrey likes armchairs"]}
