"""What is made of what the answer reader says: what is left out, which scores follow, and whose."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest
from memory_client import Draft, Source

from memoryd.domain.retrieval.answers_read import MOST_CHARACTERS, OF_EACH, Answers, read_answers
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.retrieval.recall import recall
from memoryd.domain.writing import add
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.thresholds import ANSWERING
from memoryd.model.caller import Caller
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Query
from memoryd.model.trust import Trust
from tests.builders import Local, memory, ports_over, ram_store, with_ports
from tests.forking import run_command
from tests.support import BIN, running, until
from tests.test_answer_reader import ANSWER, ASKED, NEAR, OTHER


class Reader:
    """A reader that says what it is told to, fails, or never ends."""

    def __init__(self, says=None, *, fails: bool = False, is_behind: bool = False) -> None:
        self._says, self._fails, self._is_behind = says, fails, is_behind
        self.asked: list[tuple[str, str]] = []
        self.urgent: list[bool] = []

    async def read(self, texts, *, urgent: bool = False):
        self.asked += texts
        self.urgent.append(urgent)
        if self._fails:
            raise ModelRefused("it is broken")
        if self._says is None:
            await asyncio.sleep(60)
        return [self._says(text) for _, text in texts]

    def is_behind(self, *, urgent: bool = False) -> bool:
        return self._is_behind and not urgent

    def close(self) -> None:
        pass


async def stated(reader, clock, ports, *texts) -> Local:
    """Somebody with a store and a reader."""
    alice = Local(with_ports(ports, answer_reader=reader, reads_searches=True), clock, user_id="alice")
    for text in texts:
        await alice.add(text)
    return alice


async def by_sandbox(alice: Local, *texts: str, trust: Trust = Trust.SANDBOX, grant_id: str = "g1") -> None:
    """Let a sandbox of hers state more."""
    sandbox = Caller(user_id="alice", trust=trust, grant_id=grant_id)
    for text in texts:
        await add.add(Draft(content=text), sandbox, alice.ports, now=alice.clock())


async def read_of(alice: Local, asked: str, *found: str | Memory, near=(), limit: int = 100) -> Answers:
    """What is read of some statements, whatever a search would find."""
    caller = Caller(user_id="alice")
    memories = [replace(memory(one), id=one) if isinstance(one, str) else one for one in found]
    with Prompt(asked, caller, alice.ports) as prompt:
        return await read_answers(prompt, memories, near, caller, alice.ports, limit=limit, for_scores=True)


def by(trust: Trust, *texts: str, grant_id: str = "g1", speaker: str = "", **more) -> list[Memory]:
    source = Source(speaker=speaker)
    made = (replace(memory(one, **more), id=one, trust=trust, grant_id=grant_id, source=source) for one in texts)
    return list(made)


async def found(alice: Local, text: str, **asked) -> list[str]:
    return [hit.memory.content for hit in (await alice.search(text, **asked)).hits]


async def shown(alice: Local, text: str, **asked) -> str:
    return (await alice.context(text, sections=["relevant_memory"], **asked)).text


@pytest.fixture
async def ports():
    async with ports_over(ram_store()) as made:
        yield made


CATS, NUTS = "I am allergic to cats", "I am allergic to nuts"


@pytest.mark.parametrize("reader", [Reader(fails=True), Reader()])
async def test_a_context_does_without_a_reader_that_fails_or_takes_too_long_and_a_search_says_so(ports, clock, reader):
    alice = await stated(reader, clock, ports, ANSWER)
    assert ANSWER in await shown(alice, "What does penicillin do to me?")
    assert 1 == len(reader.asked)
    result = await alice.search("What does penicillin do to me?")
    assert [ANSWER] == [hit.memory.content for hit in result.hits]
    assert "reader" in [leg.value for leg in result.unavailable_legs]


async def test_each_statement_is_read_once_for_a_context_the_host_s_at_once(ports, clock):
    reader = Reader(lambda _: 0.9)
    alice = await stated(reader, clock, ports, ANSWER, CATS, NUTS)
    await shown(alice, ASKED)
    assert reader.asked
    assert len(reader.asked) == len(set(reader.asked))
    assert [True] == reader.urgent


@pytest.mark.parametrize(("value", "is_shown"), [(ANSWERING - 0.01, False), (ANSWERING, True)])
async def test_where_it_says_that_nothing_answers_nothing_is_shown_and_else_all_that_was(ports, clock, value, is_shown):
    alice = await stated(Reader(lambda _: value), clock, ports, CATS, NUTS)
    assert ({CATS, NUTS} if is_shown else set()) == set(await found(alice, ASKED))
    assert is_shown is (CATS in await shown(alice, ASKED))
    left_out = (await alice.context(ASKED)).left_out_ids
    assert (set() if is_shown else {CATS, NUTS}) == {(await alice.get(one)).content for one in left_out}
    assert {CATS, NUTS} == set(await found(alice, ASKED, min_score=0.0))
    assert CATS in await shown(alice, ASKED, min_score=0.0)


async def test_what_is_very_near_is_shown_whatever_is_read_of_it(ports, clock):
    reader = Reader(lambda _: 0.0)
    alice = await stated(reader, clock, ports, CATS)
    assert CATS in await shown(alice, CATS)
    assert not reader.asked
    assert [CATS] == await found(alice, CATS)
    assert [(CATS, CATS)] == reader.asked  # for its score


async def test_what_is_near_is_shown_wherever_it_stands(ports, clock):
    reader = Reader(lambda _: 0.0)
    alice = await stated(reader, clock, ports)
    texts = [f"I keep the tea on shelf {n}" for n in range(OF_EACH + 1)]
    for near, hidden in ((texts[-1:], 0), ((), len(texts))):
        assert hidden == len((await read_of(alice, "Where is the tea kept?", *texts, near=near)).hidden)


async def test_searches_are_read_where_that_is_configured_alone(ports, clock):
    alice = await stated(Reader(lambda _: 0.0), clock, ports, CATS)
    alice.ports = with_ports(alice.ports, reads_searches=False)
    assert [CATS] == await found(alice, ASKED)
    assert CATS not in await shown(alice, ASKED)


async def test_scores_follow_it_and_fall_and_the_leg_says_it(ports, clock):
    alice = await stated(Reader(lambda text: 0.95 if "nuts" in text else 0.05), clock, ports, NUTS, CATS)
    result = await alice.search(ASKED, explain=True)
    scores = {hit.memory.content: hit.score for hit in result.hits}
    unread = with_ports(alice.ports, answer_reader=None)
    before = {hit.memory.content: hit.score for hit in (await Local(unread, clock, user_id="alice").search(ASKED)).hits}
    assert list(before) == list(scores)  # the order stays
    assert sorted(scores.values(), reverse=True) == [*scores.values()]
    assert scores[CATS] < before[CATS]
    legs = {hit.memory.content: [leg for leg in hit.explanation if leg.leg.value == "reader"] for hit in result.hits}
    assert [(1, 0.95)] == [(leg.rank, leg.score) for leg in legs[NUTS]]
    assert [(2, 0.05)] == [(leg.rank, leg.score) for leg in legs[CATS]]


async def test_a_sandbox_lowers_no_score_of_the_host_s_and_loses_its_place(ports, clock):
    alice = await stated(Reader(lambda text: 0.02 if "cards" in text else 0.95), clock, ports, "The dentist is in May")
    asked = "When is my dentist appointment, in which month of the year?"
    alone = await alice.search(asked)
    await by_sandbox(alice, "My dentist appointment is in which month, ask the dentist: nice cards")
    unread = Local(with_ports(alice.ports, reads_searches=False), clock, user_id="alice")
    assert "cards" in (await unread.search(asked)).hits[0].memory.content
    hits = (await alice.search(asked)).hits
    assert ["The dentist is in May"] == [hit.memory.content for hit in hits][:1]
    assert pytest.approx(alone.hits[0].score, abs=0.01) == hits[0].score
    assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]


async def test_why_a_memory_is_missing_says_that_it_was_read(ports, clock):
    alice = await stated(Reader(lambda _: 0.0), clock, ports)
    memory = (await alice.add(CATS)).memory
    result = await alice.search(ASKED, why_not=memory.id)
    assert ((), ("reader",)) == (result.hits, result.miss.reasons)
    assert [0.0] == [leg.score for leg in result.miss.explanation if leg.leg.value == "reader"]


async def test_nothing_is_hidden_beside_what_is_too_long_or_not_english(ports, clock):
    reader = Reader(lambda text: None if "cats" in text else 0.0)
    alice = await stated(reader, clock, ports, NUTS, CATS)
    assert 2 == len(await found(alice, ASKED))
    nothing = Reader(lambda _: 0.0)
    bob = Local(with_ports(ports, answer_reader=nothing, reads_searches=True), clock, user_id="bob")
    for text in ("Gegen Nüsse bin ich allergisch", "Gegen Katzen bin ich allergisch"):
        await bob.add(text)
    assert 2 == len(await found(bob, "allergisch gegen"))
    assert await found(bob, "What does allergisch gegen mean?")
    asked = len(nothing.asked)
    assert await found(bob, "What " + "allergisch gegen Nüsse und Katzen " * (MOST_CHARACTERS // 30))
    assert asked == len(nothing.asked)


@pytest.mark.parametrize(
    "texts",
    [
        ("Ich wohne im Süden", "Der Ersatzschlüssel liegt im Flur"),
        ("Mijn fiets is gestolen", "We wonen in Gent of in Brugge"),
        ("Sono allergico ai pesci e i gamberi", "Vivo a Roma"),
        ("Jeg bor ved siden af for at spare", "To bardzo dobry chleb"),
        ("住在东京", "Я живу в Москве"),
    ],
)
async def test_statements_of_other_languages_are_not_judged(ports, clock, texts):
    alice = await stated(Reader(lambda _: 0.0), clock, ports)
    assert not (await read_of(alice, "Wo Schlüssel?", *texts)).hidden
    assert 2 == len((await read_of(alice, "Where's the key?", "The key is in the hall", CATS)).hidden)


async def test_what_is_long_is_judged_by_all_of_it_however_short_a_context_is(ports, clock):
    reader = Reader(lambda text: None if len(text) > 1000 else 0.0)
    alice = await stated(reader, clock, ports, "I am allergic to nuts. " + "The kitchen is tidy and quiet. " * 60)
    assert "nuts" in await shown(alice, ASKED, max_tokens=150)


LENA = ("Lena hat im Juni Geburtstag", "Lena arbeitet bei Siemens", "Lena wohnt in Köln")
OF_LENA = ("Lena's birthday is not known to me", "I asked Lena about the birthday", "Lena had a birthday party at work")


@pytest.mark.parametrize(
    ("host", "sandbox", "value", "kept"),
    [
        pytest.param(("I am allergic to nuts, cats and rain",), [f"I am allergic to {n}" for n in range(12)], 0.9, 1,
                     id="many that do not answer hide none that does"),
        pytest.param(LENA, OF_LENA, 0.0, 3, id="english ones make no foreign ones read"),
        pytest.param((CATS, NUTS), ["What am I allergic to? " * 25], 0.0, 0, id="a long one opens no door but its own"),
        pytest.param((CATS, NUTS), ["Allergic to what I am allergic to"], 0.0, 0, id="nor does one that answers"),
    ],
)  # fmt: skip
async def test_what_a_sandbox_wrote_changes_nothing_of_the_host(ports, clock, host, sandbox, value, kept):
    def says(text: str) -> float | None:
        if len(text) > 200:
            return None
        return 0.99 if text in sandbox and kept == 0 else value if text in host else 0.01

    alice = await stated(Reader(says), clock, ports, *host)
    question = "When is Lena's birthday?" if host is LENA else ASKED
    before = [text for text in host if text in await found(alice, question)]
    assert kept == len(before)
    await by_sandbox(alice, *sandbox)
    assert before == [text for text in host if text in await found(alice, question)]


async def test_a_sandbox_s_own_is_judged_by_itself_and_gains_no_score(ports, clock):
    alice = await stated(Reader(lambda text: 0.01 if text in {CATS, NUTS} else 0.99), clock, ports, CATS, NUTS)
    text = "Of penicillin somebody said that it made people feel rather allergic"
    await by_sandbox(alice, text)
    (hit,) = (await alice.search(ASKED)).hits
    unread = Local(with_ports(alice.ports, answer_reader=None), clock, user_id="alice")
    (before,) = [one for one in (await unread.search(ASKED)).hits if one.memory.id == hit.memory.id]
    assert (text, before.score) == (hit.memory.content, hit.score)
    assert before.score < 0.9


@pytest.mark.parametrize("other", [{"grant_id": "g2"}, {"trust": Trust.IMPORTED, "grant_id": ""}])
async def test_neither_sandboxes_nor_imports_hide_anything_of_each_other(ports, clock, other):
    alice = await stated(Reader(lambda text: 0.9 if "hives" in text else 0.01), clock, ports)
    await by_sandbox(alice, *(f"I am allergic to nothing, part {n}" for n in range(OF_EACH)))
    await by_sandbox(alice, "I get hives, allergic to peaches", **other)
    assert ["I get hives, allergic to peaches"] == await found(alice, ASKED)


NOISE = [f"I am allergic to nothing, part {n}" for n in range(OF_EACH)]


@pytest.mark.parametrize(("limit", "hidden"), [(100, {CATS, *NOISE}), (OF_EACH + 1, {*NOISE})])
async def test_of_whom_others_may_have_crowded_out_nothing_is_hidden(ports, clock, limit, hidden):
    alice = await stated(Reader(lambda _: 0.0), clock, ports)
    read = await read_of(alice, ASKED, CATS, *by(Trust.SANDBOX, *NOISE), limit=limit)
    assert hidden == read.hidden


async def test_speakers_of_a_chat_are_judged_apart_and_a_sandbox_is_one_whomever_it_names(ports, clock):
    alice = await stated(Reader(lambda text: 0.9 if "hives" in text else 0.01), clock, ports)
    answer = "I get hives, allergic to peaches"
    for trust, hidden in ((Trust.HOST, {*NOISE}), (Trust.SANDBOX, set())):
        said = [*by(trust, *NOISE[:5], speaker="Mallory"), *by(trust, answer, speaker="Alice")]
        read = await read_of(alice, ASKED, *said)
        assert hidden - set(NOISE[5:]) == read.hidden


async def test_an_answer_of_the_host_s_opens_no_door_for_what_was_imported(ports, clock):
    alice = await stated(Reader(lambda text: 0.9 if text == CATS else 0.01), clock, ports)
    assert {*NOISE} == (await read_of(alice, ASKED, CATS, *by(Trust.IMPORTED, *NOISE, grant_id=""))).hidden


async def test_of_sandboxes_no_more_is_read_than_takes_a_moment(ports, clock):
    reader = Reader(lambda _: 0.9)
    alice = await stated(reader, clock, ports)
    long = [f"Of nuts and cats somebody said this and much more, part {n}, " + "and so on " * 9 for n in range(5)]
    await read_of(alice, ASKED, CATS, *by(Trust.SANDBOX, *long))
    assert [CATS] == [text for _, text in reader.asked]
    await read_of(alice, ASKED, *by(Trust.SANDBOX, *NOISE))
    assert NOISE == [text for _, text in reader.asked[1:]]


class Counting(Reader):
    """One that counts how many calls are read at once."""

    most = now = 0

    async def read(self, texts, *, urgent: bool = False):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        return [0.9 for _ in texts]


@pytest.mark.parametrize(("trust", "most"), [(Trust.SANDBOX, 1), (Trust.HOST, 3)])
async def test_of_one_sandbox_one_call_is_read_at_a_time(ports, clock, trust, most):
    reader = Counting()
    alice = await stated(reader, clock, ports, CATS)
    caller = Caller(user_id="alice", trust=trust, grant_id="g1" if trust is Trust.SANDBOX else "")
    queries = [Query(text=f"{ASKED} Or {n}?", limit=5) for n in range(3)]
    await asyncio.gather(*(recall(query, caller, alice.ports, now=clock()) for query in queries))
    assert most == reader.most


async def test_a_session_that_is_left_out_gives_a_sandbox_no_place_of_the_host_s(ports, clock):
    alice, asked = (
        await stated(None, clock, ports, "I am allergic to nuts and rain"),
        "What am I allergic to, and what?",
    )
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    await add.add(Draft(content=asked, source=Source(session_id="s1")), sandbox, alice.ports, now=clock())
    await by_sandbox(alice, *(f"What am I allergic to, and what {one}?" for one in ("later", "before", "then")))
    for excluded, first in ((), asked), (("s1",), "what later?"):
        text = await shown(alice, asked, exclude_session_ids=excluded, max_memories=2)
        assert first in text
        assert "nuts and rain" in text


async def test_members_of_a_chat_hide_nothing_of_each_other(ports, clock):
    reading = with_ports(
        ports, answer_reader=Reader(lambda text: 0.9 if "hives" in text else 0.01), reads_searches=True
    )
    members = {name: Local(reading, clock, user_id=name, chat_id="kitchen") for name in ("alice", "bob")}
    await members["alice"].add("I get hives, allergic to peaches", shared=True)
    for n in range(7):
        await members["bob"].add(f"I am allergic to nothing, part {n}", shared=True)
    assert ["I get hives, allergic to peaches"] == await found(members["alice"], ASKED)


async def test_a_session_that_is_left_out_decides_nothing(ports, clock):
    alice = await stated(Reader(lambda text: 0.9 if text == NUTS else 0.01), clock, ports)
    await alice.add(CATS)
    await alice.add(NUTS, source=Source(session_id="s9"))
    assert CATS in await shown(alice, ASKED)
    assert CATS not in await shown(alice, ASKED, exclude_session_ids=["s9"])


async def test_messages_are_not_read(ports, clock):
    reader = Reader(lambda _: 0.0)
    alice = await stated(reader, clock, ports)
    said = (replace(memory(one), id=one, kind=Kind.EPISODE) for one in (CATS, NUTS))
    assert not (await read_of(alice, ASKED, *said)).hidden
    assert not reader.asked


async def test_where_reading_is_behind_sandboxes_are_not_read_for_and_the_host_is(ports, clock):
    reader = Reader(lambda _: 0.0, is_behind=True)
    alice = await stated(reader, clock, ports, CATS)
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    result = await recall(Query(text=ASKED, limit=5), sandbox, alice.ports, now=clock())
    assert ([CATS], []) == ([hit.memory.content for hit in result.hits], reader.asked)
    assert [] == await found(alice, ASKED)


def test_a_context_of_a_daemon_leaves_out_what_does_not_answer(folder):
    with running(folder) as daemon, daemon.client("alice") as alice:
        for text in (ANSWER, NEAR, OTHER, "I walk the dog at six", "Tea with milk, no sugar"):
            alice.add(text)
        unanswered = "How old is my sister?"
        assert "Volvo" in alice.context("Do I own a car?", sections=("relevant_memory",)).text
        assert alice.search(unanswered).hits  # the search itself leaves something
        until(lambda: "- " not in alice.context(unanswered, sections=("relevant_memory",)).text)  # a busy one shows all
        command = [BIN / "memory", "context", "--endpoint", daemon.endpoint, unanswered]
        env = {**os.environ, "MEMORY_USER_ID": "alice"}

        def told():
            return run_command(command, capture_output=True, text=True, check=True, env=env).stderr

        until(lambda: "1 found and left out, as none answers: " in told())
