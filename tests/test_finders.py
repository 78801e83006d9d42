"""The finders of names: those that look again later, and those that cannot be loaded."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest
from memory_client import Draft, EntityType

from memoryd.domain.people.enrich import UNENRICHED, enrich
from memoryd.domain.writing import add
from memoryd.embedding.base import ModelRefused
from memoryd.entities.finders import Find, FinderRefused, RegexFinder, find_entities, load_finders
from memoryd.model.caller import Caller
from memoryd.model.entity import Form
from memoryd.model.trust import Trust
from memoryd.store.memories import Order
from tests.builders import Local, open_duckdb, ports_over, ram_store, with_ports


class Oracle:
    """A finder that knows one name which no pattern shows."""

    name = "oracle"
    accurate = True

    def find(self, text):
        at = text.find("sarah")
        if at >= 0:
            yield Find(at, at + 5, "Sarah", Form.NAME, EntityType.PERSON, 0.9)


async def test_enrichment_looks_again_once(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        made = (await alice.add("met sarah at the gym")).memory
        assert (await enrich(ports, now=clock())).skipped
        ports = with_ports(ports, accurate_finders=[Oracle()])
        assert (1, 0) == _counts(await enrich(ports, now=clock(), dry_run=True))
        assert (1, 1) == _counts(await enrich(ports, now=clock()))
        assert (0, 0) == _counts(await enrich(ports, now=clock()))
        assert ["Sarah"] == [ref.name for ref in (await alice.get(made.id)).entities]


def _counts(done):
    return done.examined_count, done.linked_count


def test_an_unknown_finder_is_refused_by_name_and_one_that_is_not_installed_is_left_out():
    with pytest.raises(FinderRefused, match="regex"):
        load_finders(["regxe"], model="")
    for model in ("no_such_pipeline", "no such name", "", "/dev"):  # the last is there, and no pipeline
        with pytest.raises(FinderRefused, match=f"no pipeline '{model}'"):
            load_finders(["spacy"], model=model)
    assert ["regex"] == [f.name for f in load_finders(["regex", "spacy"], model="no_such_pipeline", optional=True)]
    assert isinstance(load_finders(["regex"], model="")[0], RegexFinder)


def test_a_package_that_holds_no_pipeline_or_is_broken_is_left_out(monkeypatch):
    for model in ("spacy-legacy", "pytest"):
        assert [] == load_finders(["spacy"], model=model, optional=True)
    monkeypatch.setitem(sys.modules, "spacy", None)  # its import fails
    with pytest.raises(FinderRefused, match="cannot be imported"):
        load_finders(["spacy"], model="pytest")


def test_spacy_is_imported_only_where_there_is_a_pipeline():
    code = (
        "import sys; from memoryd.entities.finders import load_finders;"
        " load_finders(['regex', 'spacy'], model='no_such_pipeline', optional=True); print('spacy' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False\n" == told.stdout


def test_without_the_package_spacy_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("memoryd.entities.finders.distribution", _not_installed)
    with pytest.raises(FinderRefused, match=r"pip install 'memoryd\[spacy\]'"):
        load_finders(["spacy"], model="any")


def _not_installed(name):
    raise PackageNotFoundError(name)


@pytest.mark.parametrize("text", ["I HATE CILANTRO!!!!!", "I LOVE SUSHI AND RAMEN", "REMEMBER THE MILK"])
def test_in_capitals_nobody_is_named(text):
    assert [] == [find.text for find in RegexFinder().find(text) if find.form is Form.NAME]


def test_a_name_in_capitals_alone_is_one():
    assert ["ANNA"] == [find.text for find in RegexFinder().find("ANNA is here") if find.form is Form.NAME]


class Doubter(Oracle):
    """A finder that also knows of one name that it is nobody's."""

    def review(self, text, found):
        return [replace(find, type=EntityType.OTHER, denied=True) if find.text == "Henry" else find for find in found]


async def test_a_finder_that_judges_takes_back_what_looked_like_a_person(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        made = (await alice.add("Henry is our old hoover, sarah gave it to us")).memory
        assert [("Henry", EntityType.PERSON)] == [(one.text, one.type) for one in made.mentions]
        done = await enrich(with_ports(ports, accurate_finders=[Doubter()]), now=clock())
        assert (1, 1, 1, 0) == (*_counts(done), done.denied_count, done.remaining_count)
        seen = (await alice.get(made.id)).mentions
        assert [("Henry", EntityType.OTHER), ("Sarah", EntityType.PERSON)] == [(one.text, one.type) for one in seen]
        assert [one.entity_id for one in made.mentions] == [one.entity_id for one in seen[:1]]


async def test_whom_a_relation_names_stays_a_person_whatever_a_finder_says(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.add("My brother's name is Henry")
        made = (await alice.add("We saw Henry and the band")).memory
        await enrich(with_ports(ports, accurate_finders=[Doubter()]), now=clock())
        assert EntityType.PERSON in {one.type for one in (await alice.get(made.id)).mentions if one.text == "Henry"}


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_nobody_s_flood_keeps_the_names_of_others_waiting(clock, folder, kind):
    made = ram_store() if kind == "ram" else open_duckdb(folder)
    async with ports_over(made) as ports:
        bob, alice = (Local(ports, clock, user_id=name) for name in ("bob", "alice"))
        sandbox = Caller(user_id="carol", trust=Trust.SANDBOX, grant_id="g1")
        await add.add(Draft(content="the sandbox was here first"), sandbox, ports, now=clock())
        for n in range(5):
            await bob.add(f"the tea stands on shelf {n}")
        await alice.add("met sarah at the gym")
        first = {
            memory.content for memory in await ports.store.memories.scan(UNENRICHED, limit=3, order=Order.IN_TURNS)
        }
        assert {"the tea stands on shelf 0", "the tea stands on shelf 1", "met sarah at the gym"} == first
        last = {memory.content for memory in await ports.store.memories.scan(UNENRICHED, limit=6, order=Order.IN_TURNS)}
        assert "the sandbox was here first" not in last
        assert 7 == await ports.store.memories.count(UNENRICHED)


class Refusing(Oracle):
    """A finder whose model cannot be loaded."""

    def find(self, text):
        raise ModelRefused(f"people.npz cannot be read, before {len(text)} characters")


async def test_what_no_model_could_read_is_looked_at_when_it_is_there(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.add("met sarah at the gym")
        done = await enrich(with_ports(ports, accurate_finders=[Refusing()]), now=clock())
        assert "people.npz cannot be read" in done.skipped
        assert (1, 1) == _counts(await enrich(with_ports(ports, accurate_finders=[Oracle()]), now=clock()))


@pytest.mark.parametrize(
    ("text", "people"),
    [("My workshop is in the old mill", []), ("My livestock needs hay", []), ("Will and I went", ["Will"])],
)
def test_what_somebody_does_is_a_whole_word(text, people):
    found = find_entities(text, [RegexFinder()])
    assert people == [one.text for one in found if one.type is EntityType.PERSON]


def test_a_word_of_every_day_at_the_beginning_names_nobody_unless_something_personal_is_said():
    texts = (
        "Tea with milk",
        "One of us is ill",
        "Day off on Friday",
        "Said no to the job",
        "Left the keys",
        "Life is good",
    )
    for text in texts:
        assert not [one for one in find_entities(text, [RegexFinder()]) if one.type is EntityType.PERSON], text
    (found,) = find_entities("Said called me", [RegexFinder()])
    assert ("Said", EntityType.PERSON) == (found.text, found.type)
