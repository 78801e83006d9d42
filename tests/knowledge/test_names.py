"""Who is meant: the nickname table, and a generated family in which nobody is taken for another."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from nicknames import NickNamer

from memoryd.entities.directory import Directory
from memoryd.entities.finders import Find, RegexFinder, find_entities
from memoryd.entities.lookup import meant_by
from memoryd.entities.resolve import mentions_of
from memoryd.knowledge.grammar.names import fullest, may_be_one
from memoryd.knowledge.grammar.relations import introduced
from memoryd.model import limits
from memoryd.model.entity import EntityType, Form
from tests.builders import memory

FINDERS = (RegexFinder(),)
_ids = itertools.count()


def tell(directory: Directory, text: str, subjects=()):
    """Add a statement to a directory, as an add does; return whom it is about, by id."""
    mentions = mentions_of(text, subjects, directory, FINDERS, lambda: f"e{next(_ids)}")
    directory.add(memory(text, subjects=subjects, mentions=mentions))
    return [mention.entity_id for mention in mentions if mention.about]


def pairs():
    return [(name, nick) for name, nicks in NickNamer().nickname_lookup.items() for nick in nicks]


def share_resolved(first: str, second: str) -> float:
    """Of the pairs of the nickname table, the share that is told as one person by two statements."""
    found = 0
    for name, nick in pairs():
        directory = Directory()
        one = tell(directory, first.format(name.capitalize()))
        two = tell(directory, second.format(nick.capitalize()))
        found += bool(one) and bool(two) and directory.root(one[0]) == directory.root(two[0])
    return found / len(pairs())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("My brother {} lives in Ohio", "{} likes fishing"),
        ("{} likes tea", "{} moved to Rome"),
        ("my friend {} is a nurse", "{}'s favorite color is red"),
    ],
)
def test_pairs_of_the_nickname_table_are_one_person(first, second):
    assert len(pairs()) > 2000
    assert share_resolved(first, second) >= 0.95


KIN = {
    "mother": ["Hannah Berg"], "father": ["Robert Berg"], "sister": ["Anna Berg", "Ann-Kathrin Berg"],
    "brother": ["Aaron Berg", "Samuel Berg"], "daughter": ["Joanna Berg", "Mia Berg"], "son": ["Max Berg"],
    "aunt": ["Erin Vale"], "uncle": ["Bert Vale"], "cousin": ["Samantha Vale", "Alex Vale"], "wife": ["Liz Berg"],
    "boss": ["Ronald Pike"], "friend": ["Johanna Pike", "Alexander Roe", "Anna Roe", "Sam Roe", "Robin Roe"],
    "colleague": ["Hanna Lund", "Roberta Lund", "Maxine Lund", "Mia Lund"], "neighbor": ["Aron Lund", "Elizabeth Roe"],
    "dentist": ["Erika Vale"], "grandmother": ["Eliza Vale"], "nephew": ["Maximilian Vale"], "niece": ["Lisa Vale"],
}  # fmt: skip
SAYS = [
    "{} likes tea", "{} moved to Rome", "{} works at a bank", "{}'s favorite color is red", "{} is 40 years old",
    "{} called on Monday", "{} plays chess", "I met {} at the lake", "Yesterday {} told me a joke", "{} has two cats",
]  # fmt: skip


def family(count: int, seed: int = 7):
    """Yield statements and the person that each is about: by full name, relation and name, or relation alone."""
    dice = random.Random(seed)
    people = [(relation, name) for relation, names in KIN.items() for name in names]
    dice.shuffle(people)
    for relation, name in people:  # everybody is introduced
        yield f"My {relation} {name} is here", name
    alone = {relation: names[0] for relation, names in KIN.items() if len(names) == 1}
    for _ in range(count - len(people)):
        relation, name = dice.choice(people)
        called = dice.choice([name, f"my {relation} {name}", f"my {relation} {name.split()[0]}"])
        if relation in alone and dice.random() < 0.2:
            called = f"my {relation}"
        text = dice.choice(SAYS).format(called)
        yield text[0].upper() + text[1:], name


def test_in_a_family_of_ten_thousand_statements_nobody_is_taken_for_another():
    directory = Directory()
    person_of: dict[str, set[str]] = {}
    count = 0
    for text, name in family(10_000):
        mentions = mentions_of(text, (), directory, FINDERS, lambda: f"e{next(_ids)}")
        directory.add(memory(text, mentions=mentions))
        for mention in mentions:
            if mention.type is EntityType.PERSON:
                person_of.setdefault(mention.entity_id, set()).add(name)
                count += 1
    merged: dict[str, set[str]] = {}
    for one, names in person_of.items():
        merged.setdefault(directory.root(one), set()).update(names)
    assert count > 9_000
    assert [] == [names for names in merged.values() if len(names) > 1]
    people = sum(len(names) for names in KIN.values())
    assert people <= len(merged) <= people * 1.5  # a duplicate is better than a wrong merge, but not the rule


def test_names_are_compared_as_wholes():
    assert may_be_one("Sarah", "Sarah Miller")
    assert may_be_one("Bob Dylan", "Robert Dylan")
    assert not may_be_one("Bob Dylan", "Robert Smith")
    assert not may_be_one("Ann", "Joanna")
    assert not may_be_one("Sam", "Samsung Galaxy")
    assert "Robert" == fullest(["Bob", "Robert"])


def test_an_alias_is_told_in_many_ways():
    for text in (
        "Robert, aka Bobo, likes tea", "Robert goes by Bobo", "Everyone calls Robert Bobo", "Robert (@bobo) likes tea",
        "Robert's username is bobo", "@bobo is Robert",
    ):  # fmt: skip
        directory = Directory()
        tell(directory, text)
        name = "@bobo" if "@" in text or "username" in text else "Bobo"
        assert meant_by(name, directory) == meant_by("Robert", directory) != set(), text


def test_overlaps_go_to_the_more_confident_find_then_to_the_longer():
    class Two:
        name, accurate = "two", True

        def find(self, text):
            yield Find(0, 5, "Sarah", Form.NAME, EntityType.PERSON, 0.5)
            yield Find(0, 12, "Sarah Miller", Form.NAME, EntityType.PERSON, 0.5)
            yield Find(6, 12, "Miller", Form.NAME, EntityType.ORGANIZATION, 0.9)

    assert ["Sarah", "Miller"] == [find.text for find in find_entities("Sarah Miller", [Two()])]


def test_a_real_spacy_pipeline_finds_what_patterns_do_not(tmp_path):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaCy's own dependencies
        import spacy

        from memoryd.entities.finders import load_finders

        pipeline = spacy.blank("en")
        pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "sarah miller"}])
        pipeline.to_disk(tmp_path / "pipeline")
        finders = load_finders(["regex", "spacy"], model=str(tmp_path / "pipeline"))
        found = find_entities("met sarah miller at the gym", finders)
    assert [("sarah miller", EntityType.PERSON)] == [(find.text, find.type) for find in found]
    assert [] == find_entities("met sarah miller at the gym", FINDERS)


@pytest.mark.parametrize(
    "part", ["A-", "A'", "XML-HTTP-REST-API-", "AB-CD-", "A ", "my wife ", "Ann is my ", "Ann (", "@a"]
)
def test_no_text_takes_long_to_read_for_names(part):
    began = time.process_time()
    find_entities(part * (limits.MAX_CONTENT_BYTES // len(part)), [RegexFinder()])
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Called Ben about invoice", {"Ben": False}),
        ("Met Anna at the lake", {"Anna": False}),
        ("Ask Tom for the key", {"Tom": False}),
        ("Sent Maria Lopez the file", {"Maria Lopez": False}),
        ("Lunch with Ben. Talked about Hooli", {"Ben": False, "Hooli": False}),
        (
            "Fred sings. Visited Sarah in Rome. Paid Dr. Lee",
            {"Fred": True, "Sarah": False, "Rome": False, "Dr Lee": False},
        ),
        ("Mark called about the rent", {"Mark": True}),
        ("Ahmed lives in Oslo", {"Ahmed": True, "Oslo": False}),
        ("Sterling works at Acme", {"Sterling": True, "Acme": False}),
        ("J. Smith likes tea", {"J. Smith": True}),
    ],
)
def test_what_was_done_is_no_part_of_a_name(text, named):
    assert named == {find.text: find.about for find in find_entities(text, (RegexFinder(),))}


@pytest.mark.parametrize(
    "text",
    ["Python is my favorite language", "Python works well", "Docker is a tool", "Slack has a new look", "Rex is a dog",
     "Zorblax is my cat", "Kubernetes is my job"],
)  # fmt: skip
def test_a_thing_is_no_person(text):
    assert EntityType.PERSON not in {find.type for find in find_entities(text, (RegexFinder(),))}


@pytest.mark.parametrize("text", ["Xiomara is a doctor", "Xiomara likes tea", "Xiomara is my boss", "Oluwaseun is 30"])
def test_an_unknown_name_is_a_person_where_only_people_are_so(text):
    assert EntityType.PERSON is next(f.type for f in find_entities(text, (RegexFinder(),)) if f.text != "boss")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My boss is Jane", {"boss"}), ("Jane is my boss", {"boss"}), ("Meine Schwester heißt Anna", {"sister"}),
        ("Jane isn't my boss any more", {"boss"}), ("Jane is no longer my boss", {"boss"}),
        ("My wife's name is Sarah", {"wife"}), ("Our landlord is now called Bert", {"landlord"}),
        ("My mother was Polish, and my sister Anna lives in Oslo", {"mother"}), ("My boss Jane lives in Oslo", set()),
        ("My sister is 12", set()), ("My sister is in Oslo", set()), ("My sister Anna is a nurse", set()),
        ("My boss was nice to Jane", set()), ("is my boss " * 800, set()),
    ],
)  # fmt: skip
def test_who_somebody_is_told_apart_from_what_they_do(text, expected):
    assert expected == introduced(text)
