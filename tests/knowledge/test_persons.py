"""Who is a person: by given name, relation, title and what stands around; cars, books and greetings are none."""

from __future__ import annotations

import itertools

import pytest

from memoryd.entities.directory import Directory
from memoryd.entities.finders import RegexFinder, find_entities
from memoryd.entities.known_names import KnownNames
from memoryd.entities.resolve import mentions_of
from memoryd.knowledge.grammar.names import is_doubtful_name, is_given_name
from memoryd.model.entity import EntityType, Form
from memoryd.model.trust import Trust
from tests.builders import memory

FINDERS = (RegexFinder(),)
_ids = itertools.count()

PERSONS = {
    "Lotte gave up the violin": ["Lotte"],
    "Emil grew out of his coat": ["Emil"],
    "Last night Bram sprained his wrist": ["Bram"],
    "Coffee with Farid near the office": ["Farid"],
    "Wangari wrote the report and Krzysztof checked it": ["Wangari", "Krzysztof"],
    "Did Mathilde ever call back?": ["Mathilde"],
    "Please tell Dmitri that the gate is open": ["Dmitri"],
    "Dr. Okonkwo moved the appointment": ["Dr Okonkwo"],
    "Our landlord, a Mr. Vandersloot, wants to sell": ["Mr Vandersloot"],
    "Uncle Zbyszek keeps rabbits": ["Zbyszek"],
    "Great-aunt Wilhelmina left me a clock": ["Wilhelmina"],
    "Ayer Joaquín perdió el tren": ["Joaquín"],
    "Gestern hat Friederike angerufen": ["Friederike"],
    "Will broke his arm": ["Will"],
    "Rose quit smoking": ["Rose"],
    "I told May about the party": ["May"],
    "Jan Willem van den Broek chairs the council": ["Jan Willem van den Broek"],
}
RELATED = {
    "My sister An lives in Ghent": ("An", "sister"),
    "my boss Priya Nair is away": ("Priya Nair", "boss"),
    "Our daughter Lotte swims": ("Lotte", "daughter"),
    "My brother is called Will": ("Will", "brother"),
    "Mijn zus An verhuist": ("An", "sister"),
    "Meine Frau Jutta mag keine Milch": ("Jutta", "wife"),
    "Mon frère Luc est médecin": ("Luc", "brother"),
    "Mi hermana Carmen canta": ("Carmen", "sister"),
    "Mio fratello Davide cucina": ("Davide", "brother"),
    "Moja córka Hania maluje": ("Hania", "daughter"),
    "May, my flatmate, pays the rent": ("May", "roommate"),
    "Grandma Teodora bakes": ("Teodora", "grandmother"),
}
NOBODY = [
    "The Volvo V50 needs tyres",
    "Kia e-Niro charges slowly",
    "Renault Zoe, white, on level two",
    "Our Mercedes broke down",
    "I had a Ford Ka",
    "Finished Wolf Hall on the train",
    "We played Elden Ring",
    "Hi Claude, what is on my list?",
    "Dear Support, my invoice is wrong",
    "Thanks Assistant",
    "Dag Marta, tot straks",
    "Merci Camille",
    "Mijn fiets is blauw",
    "Der Hund frisst Gras",
    "Das Auto steht in der Werkstatt",
    "Les voisins font du bruit",
    "Unsere Küche ist neu",
    "Im Regen steht das Rad",
    "Weekly Meal Plan",
    "Packing List: Norway Trip",
    "The clinic is on Victoria Street",
    "May is our busiest month",
    "Netflix raised its prices",
    "Redis crashed again",
    "I speak French and Dutch",
    "A Bloody Mary before noon",
    "Next to the gym is a Wendy's",
    "Will you remind me?",
    "An electrician came",
    "Christmas Eve is quiet here",
    "Where did I buy it?",
]


def found(text: str, *more) -> list[tuple[str, Form]]:
    finds = find_entities(text, [*FINDERS, *more])
    return [(find.text, find.form) for find in finds if find.type is EntityType.PERSON]


@pytest.mark.parametrize(("text", "names"), PERSONS.items())
def test_a_person_is_found_wherever_the_name_stands(text, names):
    assert names == [name for name, form in found(text) if form is Form.NAME]


@pytest.mark.parametrize(("text", "told"), RELATED.items())
def test_a_person_with_a_relation_and_a_name_has_both(text, told):
    finds = [find for find in find_entities(text, FINDERS) if find.type is EntityType.PERSON]
    assert {told[0]: Form.NAME, told[1]: Form.RELATION} == {find.text: find.form for find in finds}
    assert {True} == {find.about for find in finds}
    assert 1 == len({find.group for find in finds})


@pytest.mark.parametrize("text", NOBODY)
def test_no_car_book_greeting_or_article_is_a_person(text):
    assert [] == found(text)


def test_a_known_name_counts_wherever_it_stands():
    directory = Directory()
    for text in ("My friend Vuk drives a tram", "My sister An lives in Ghent", "My flatmate May cooks"):
        mentions = mentions_of(text, (), directory, FINDERS, lambda: f"e{next(_ids)}")
        directory.add(memory(text, mentions=mentions))
    known = KnownNames([directory])
    for text, name in (
        ("Vuk resigned", "Vuk"), ("They say Vuk outran the bus", "Vuk"), ("I owe Vuk ten euros", "Vuk"),
        ("Is An still in Ghent?", "An"), ("Where does An live?", "An"), ("An doesn't eat pork", "An"),
        ("Ask May for the keys", "May"),
    ):  # fmt: skip
        assert name in [one for one, _ in found(text, known)], text
    for text in (
        "An electrician came",
        "May is a warm month",
        "In May it rains",
        "Will it rain?",
        "Vuk Karadzic wrote it",
    ):
        assert not {"Vuk", "An", "May"} & {one for one, _ in found(text, known)}, text


def test_given_names_are_told_from_words():
    assert all(map(is_given_name, ("Lotte", "emil", "Ngozi", "Krzysztof", "Jean-Luc", "Bob")))
    assert not any(map(is_given_name, ("Volvo", "Netflix", "Redis", "table", "Kubernetes", "")))
    assert all(map(is_doubtful_name, ("May", "Will", "Paris", "Mercedes")))
    assert not any(map(is_doubtful_name, ("Lotte", "Bob", "Florence")))


def test_what_a_sandbox_calls_a_person_makes_none_of_what_the_host_writes():
    directory = Directory()
    for text in ("Acme likes cheese", "Paris called her mother"):
        mentions = mentions_of(text, (), directory, FINDERS, lambda: f"e{next(_ids)}", weight=Trust.SANDBOX.weight)
        directory.add(memory(text, mentions=mentions, trust=Trust.SANDBOX))
    made = mentions_of("I work at Acme in Paris", (), directory, FINDERS, lambda: "new", weight=Trust.HOST.weight)
    assert {"Acme", "Paris"} == {mention.text for mention in made}
    assert EntityType.PERSON not in {mention.type for mention in made}


@pytest.mark.parametrize(
    "text",
    [
        "I called my mother Sunday", "my brother Tuesday is busy", "I saw my dad June 5th", "I live in Florence",
        "I moved to Austin", "We flew to Sydney yesterday", "My sister Where sings", "My boss What shouts",
        "I moved to Porto in January with my wife", "We moved to Bonn in April with my husband",
        "I started school in August with my friend", "Since June my mother sings", "Last May my aunt came",
    ],
)  # fmt: skip
def test_no_day_and_no_place_is_a_person(text):
    assert [] == [name for name, form in found(text) if form is Form.NAME]
