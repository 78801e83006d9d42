"""The people reader: names that no pattern knows are found in the background, and cars and cats are taken back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from memory_client import Draft, EntityType

from memoryd.daemon.config import Config, ReadersConfig, StrategiesConfig
from memoryd.daemon.readers import load_every_finder
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.people import PeopleFinder
from memoryd.embedding.readers.thresholds import NAMED
from memoryd.entities.finders import FinderRefused, RegexFinder, find_entities
from tests.forking import run_command
from tests.readers.people.names import common_words, hard_names, named_of
from tests.readers.voices import voices
from tests.support import running, until

APART = [voice for voice in voices() if voice.is_apart][::9]


def people_in(text, finders):
    return {find.text for find in find_entities(text, finders) if find.type is EntityType.PERSON}


def test_it_tells_names_from_words_in_the_talk_of_strangers():
    reader, found, named, right = PeopleFinder(), 0, 0, 0
    for one in named_of(APART, common_words(voices())):
        scores = {(word.start, word.end): word.named >= NAMED for word in reader.read(one.text)}
        for place, is_name in one.words.items():
            named += is_name
            found += scores.get(place, False)
            right += is_name and scores.get(place, False)
    assert right / named > 0.8
    assert right / found > 0.8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("had lunch with mai, she's back at work half days", {"mai"}),
        ("The Mercedes needs new brakes before the inspection.", set()),
        ("Chidi's allergic to shellfish, says his mother.", {"Chidi"}),
        ("", set()),
        ("💥" * 50, set()),
        ("Will it rain on Sunday?", set()),
        ("I met Karim. Ana came later.", {"Karim", "Ana"}),
        ("Yesterday I saw Tom.Jerry was ill.", {"Tom", "Jerry"}),
        ("Mary-Ann Smith met Karim, Ana and Tom", {"Mary-Ann Smith", "Karim", "Ana", "Tom"}),
    ],
)
def test_what_it_finds(text, expected):
    assert expected == {find.text for find in PeopleFinder().find(text)}


def test_what_a_pattern_took_for_a_person_is_taken_back_and_what_relations_say_stays():
    both = [RegexFinder(), PeopleFinder()]
    text = "Aldi had the cheap drill again."
    assert {"Aldi"} == people_in(text, both[:1])
    assert set() == people_in(text, both)
    assert {"Windows"} <= people_in("Grandma Windows is visiting", both)


def test_a_text_is_read_once_and_not_kept(monkeypatch):
    finder, texts = PeopleFinder(), []
    monkeypatch.setattr(finder, "read", lambda text: texts.append(text) or PeopleFinder.read(finder, text))
    for text in ("Chelsea lost at home again", "had lunch with mai"):
        find_entities(text, [RegexFinder(), finder])
    assert ["Chelsea lost at home again", "had lunch with mai"] == texts
    assert not any(texts[-1] in str(kept) for kept in vars(finder).values())


def test_a_long_or_hostile_text_is_read_at_its_beginning():
    reader = PeopleFinder()
    words = reader.read("Karim came. " * 2000)
    assert 0 < len(words) <= 126
    assert all(0 <= word.named <= 1 for word in reader.read("\u202e\x00Ka\u0301rim \U0001f600 \ufdfa" * 40))


FRAMES = ("I saw {}.", "saw {} last night", "We visited {}.", "I love {}.", "{} was great.", "It rained. {} was fine.")
PLAIN = ("Tom", "Priya", "Karim", "Agnieszka", "Tunde", "Chen", "Lucia", "Deborah", "Kenji", "Oleg", "Zainab", "Heidi")
THINGS = (
    "Ghent",
    "Dune",
    "Ikea",
    "Netflix",
    "Kraków",
    "Coldplay",
    "Oppenheimer",
    "Uber",
    "Leeds",
    "Zara",
    "Aldi",
    "Tetris",
)


def test_plain_names_stand_where_films_towns_and_shops_do():
    reader = PeopleFinder()

    def share(words):
        texts = [(frame.format(word), word) for frame in FRAMES for word in words]
        return np.mean([word in {find.text for find in reader.find(text)} for text, word in texts])

    assert share(PLAIN) >= 0.95
    assert share(THINGS) <= 0.2


def test_what_it_is_tuned_with_marks_each_word_of_a_name_and_nothing_else():
    named = {
        one.text: {one.text[slice(*place)] for place, is_named in one.words.items() if is_named} for one in hard_names()
    }
    assert {"Rose"} == named["Rose next door is feeding the cats while we're in Cork."]
    assert set() == named["The climbing rose by the back door needs tying in before the winter."]
    assert {"Basil", "Onyango"} == named["The surgeon, Dr Basil Onyango, says dad's knee can wait until spring."]
    assert not [text for text in named if "[" in text or "]" in text]


def test_it_is_one_of_the_finders_of_the_background_unless_it_is_switched_off(tmp_path):
    names = [finder.name for finder in load_every_finder(Config())[1]]
    assert "people" in names
    assert "people" not in [f.name for f in load_every_finder(Config(readers=ReadersConfig(people="none")))[1]]
    with pytest.raises(ModelRefused, match="make train-readers READER=people"):
        load_every_finder(Config(readers=ReadersConfig(people=str(tmp_path))))
    asked = Config(readers=ReadersConfig(people="none"), strategies=StrategiesConfig(fast=("regex", "people")))
    with pytest.raises(FinderRefused, match="readers.people is none"):
        load_every_finder(asked)
    with pytest.raises(ModelRefused, match="make train-readers READER=people"):
        PeopleFinder(tmp_path).read("Karim came")


def test_a_daemon_finds_who_was_missed_in_the_background(folder):
    with running(folder) as daemon, daemon.client() as host:
        host.add("had lunch with mai, she's back at work half days")
        assert () == host.people().people
        host.run_enrichment()
        assert ["mai"] == [one.name for one in host.people().people]


def test_a_night_looks_at_more_than_one_call_does(folder):
    with running(folder) as daemon, daemon.client() as host:
        host.add_batch([Draft(content=f"the tea stands on shelf {n}") for n in range(100)])
        run = host.run_job("enrichment")
        until(lambda: host.job_run(run.id).end_time is not None)
        assert 0 == host.run_enrichment().examined_count


def test_the_command_goes_on_until_all_is_looked_at(folder):
    with running(folder) as daemon, daemon.client() as host:
        host.add_batch([Draft(content=f"the tea stands on shelf {n}") for n in range(60)])
        host.add("had lunch with mai")
        told = [
            run_command(daemon.command("enrich", *words), capture_output=True, text=True, check=True).stdout
            for words in (("--dry-run",), ("--json",), ())
        ]
    assert "would look at 61 facts\n" == told[0]
    done = json.loads(told[1])
    assert (61, 0) == (done["examined_count"], done["remaining_count"])
    assert 1 == done["linked_count"]
    assert "looked at 0 facts, linked 0 entities, took back 0\n" == told[2]
