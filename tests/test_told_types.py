"""What the words before a name say of what it is, and what they leave alone."""

from __future__ import annotations

import pytest

from memoryd.entities.finders import RegexFinder, find_entities
from memoryd.model.entity import EntityType, Form

PERSON, OTHER, PLACE, FIRM = EntityType.PERSON, EntityType.OTHER, EntityType.LOCATION, EntityType.ORGANIZATION


@pytest.mark.parametrize(
    ("text", "name", "wanted"),
    [
        ("my dog Bello loves walks", "Bello", OTHER),
        ("My dog is called Rex", "Rex", OTHER),
        ("My dog's name is Max", "Max", OTHER),
        ("our black cat named Luna sleeps", "Luna", OTHER),
        ("Sarah's hamster Pip died", "Sarah", PERSON),
        ("Sarah's hamster Pip died", "Pip", OTHER),
        ("my dog sitter Anna is ill", "Anna", PERSON),
        ("I walked my dog and Anna called", "Anna", PERSON),
        ("I fed my dog, Anna laughed", "Anna", PERSON),
        ("my friend Max has a dog", "Max", PERSON),
        ("I work at Acme as a clerk", "Acme", FIRM),
        ("I started at Globex as a manager", "Globex", FIRM),
        ("she has a job at Hooli", "Hooli", FIRM),
        ("my brother works at Acme", "Acme", FIRM),
        ("Sarah has worked for Acme", "Acme", FIRM),
        ("the tour started at Lisbon", "Lisbon", PLACE),
        ("my meeting started at Lisbon", "Lisbon", PLACE),
        ("this medicine works for Rex", "Rex", OTHER),
        ("I work for Sarah", "Sarah", PERSON),
        ("I work in Lisbon", "Lisbon", PLACE),
        ("we met at Lisbon", "Lisbon", PLACE),
    ],
)
def test_an_animal_is_no_person_and_an_employer_no_place(text, name, wanted):
    found = {one.text: one.type for one in find_entities(text, [RegexFinder()]) if one.form is Form.NAME}
    assert wanted is found[name]
