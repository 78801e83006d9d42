"""The answer reader: what answers a question stands first in a context, and what does not is left out."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest
from memory_client import Draft, MessageDraft, Source

from memoryd.daemon.config import Config, EmbeddingConfig, ReadersConfig, SearchConfig
from memoryd.daemon.readers import load_every_finder, make_answer_reader, make_change_reader, make_keeping_reader
from memoryd.domain.reading.answers_read import MOST_CHARACTERS, OF_EACH
from memoryd.domain.reading.recall import recall
from memoryd.domain.writing import add
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import data_file
from memoryd.embedding.readers.answer import answer_reader
from memoryd.embedding.readers.reader import Reader as BackgroundReader
from memoryd.embedding.readers.retrieval import retrieval_encoder
from memoryd.embedding.readers.texts import MOST_ANSWER
from memoryd.embedding.readers.thresholds import ANSWERING
from memoryd.model.caller import Caller
from memoryd.model.query import Query
from memoryd.model.trust import Trust
from tests.builders import Local, ports_over, ram_store
from tests.readers.answer_pairs import with_notes_of
from tests.readers.voices import voices
from tests.support import PATIENCE_S, running

APART = [voice for voice in voices() if voice.is_apart][::12]
ASKED = "What am I allergic to, and is there anything else that somebody who cooks has to keep away from me?"
ANSWER, NEAR, OTHER = "Penicillin brings me out in hives", "My sister is allergic to cats", "I drive an old Volvo"


async def test_it_tells_what_nothing_answers_from_the_same_with_a_note_that_answers():
    encoder, reader, hidden = retrieval_encoder(), answer_reader(), dict[str, list[bool]]()
    for voice in APART:
        answered = [one for one in voice.questions if one.answers][::3]
        asked = [*answered, *(one for one in voice.questions if one.notes)]
        stored = encoder.encode([one.text for one in voice.store], query=False)
        near = encoder.encode([one.text for one in asked], query=True) @ stored.T
        for question, row in zip(asked, near, strict=True):
            best = [voice.store[n].text for n in np.argsort(-row)[:OF_EACH]]
            read = await reader.read([(question.text, text) for text in (*best, *question.notes)])
            without, notes = max(read[: len(best)]), read[len(best) :]
            kind = "nothing answers" if question.notes else "answered"
            hidden.setdefault(kind, []).append(without < ANSWERING)
            hidden.setdefault("noted", []).extend(max(without, note) < ANSWERING for note in notes)
    shares = {kind: np.mean(some) for kind, some in hidden.items()}
    assert shares["nothing answers"] >= 0.3
    assert max(shares["answered"], shares["noted"]) <= 0.04
    reader.close()


def test_what_it_is_tuned_with_calls_right_what_answers_and_nothing_else():
    two = voices()[:2]
    wanted = {
        one.text: {*one.notes, *(voice.store[place].text for place in one.answers)}
        for voice in two
        for one in voice.questions
    }
    pairs = [pair for pair in with_notes_of(two) if pair.question in wanted]
    assert all(pair.answers is (pair.statement in wanted[pair.question]) for pair in pairs)
    noted = {one.text for voice in two for one in voice.questions if one.notes}
    assert noted == {pair.question for pair in pairs if pair.answers} & noted
    assert noted < {pair.question for pair in pairs if not pair.answers}


async def test_a_pair_has_one_score_in_any_company_and_a_long_or_empty_text_none():
    reader = answer_reader()
    (alone,) = await reader.read([(ASKED, ANSWER)])
    long = "word " * (MOST_ANSWER + 1)
    read = await reader.read([(ASKED, ANSWER), (ASKED, long), (ASKED, ""), ("", ANSWER), (ASKED, "\u202e\x00💥")] * 3)
    assert [pytest.approx(alone, abs=1e-5), None, None, None] == read[:4]
    assert 0 <= read[4] <= 1
    (at_the_end,) = await reader.read([(long * 40 + ASKED, ANSWER)])
    assert 0 <= at_the_end <= 1
    reader.close()


def test_it_is_switched_off_alone_and_with_the_vectors_and_a_directory_without_it_is_refused(tmp_path):
    assert make_answer_reader(Config()) is not None
    assert make_answer_reader(Config(readers=ReadersConfig(answer="none"))) is None
    assert make_answer_reader(Config(embedding=EmbeddingConfig(provider="none"))) is None
    with pytest.raises(ModelRefused, match=r"readers.answer is '/no/such'"):
        make_answer_reader(Config(readers=ReadersConfig(answer="/no/such")))
    with pytest.raises(ModelRefused, match="make train-readers READER=answer"):
        asyncio.run(answer_reader(tmp_path).read([(ASKED, ANSWER)]))
    with pytest.raises(ModelRefused, match=r"search.read_answers is true, and readers.answer is none"):
        make_answer_reader(Config(readers=ReadersConfig(answer="none"), search=SearchConfig(read_answers=True)))


@pytest.mark.parametrize("name", ["answer", "change", "keeping", "people"])
def test_a_file_of_your_own_that_does_not_fit_is_refused_at_the_start(tmp_path, name):
    make = {
        "answer": make_answer_reader,
        "change": make_change_reader,
        "keeping": make_keeping_reader,
        "people": load_every_finder,
    }[name]
    config, path = Config(readers=ReadersConfig(**{name: str(tmp_path)})), tmp_path / f"{name}.npz"
    path.write_bytes(data_file(f"readers/{name}.npz"))
    assert make(config) is not None
    with np.load(path) as file:
        values = dict(file)
    other = "people" if name == "change" else "change"
    path.write_bytes(data_file(f"readers/{other}.npz"))
    with pytest.raises(ModelRefused, match=f"{name}.npz is of the {other} reader"):
        make(config)
    unfit = {
        "its head is of shape": values | {"head.weight": values["head.weight"][:, :0]},
        "holds other things than numbers; make it by": values | {"head.bias": np.array([{}], object)},
        "is of another model": values | {"sha256": np.array("0")},
        "cannot be read: 'layer2.k.a'": {part: value for part, value in values.items() if part != "layer2.k.a"},
    }
    for said, made in unfit.items():
        np.savez(path, **made)
        with pytest.raises(ModelRefused, match=said):
            make(config)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelRefused, match="cannot be read: it is no .npz file; make it by"):
        make(config)


class Reader:
    """A reader that says what it is told to, fails, or never ends."""

    def __init__(self, says=None, *, fails: bool = False, is_behind: bool = False) -> None:
        self._says, self._fails, self.is_behind = says, fails, is_behind
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

    def close(self) -> None:
        pass


async def stated(reader, clock, ports, *texts) -> Local:
    """Somebody with a store and a reader."""
    alice = Local(replace(ports, answer_reader=reader, reads_searches=True), clock, user_id="alice")
    for text in texts:
        await alice.add(text)
    return alice


async def by_sandbox(alice: Local, *texts: str) -> None:
    """Let a sandbox of hers state more."""
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    for text in texts:
        await add.add(Draft(content=text), sandbox, alice.ports, now=alice.clock())


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
    assert {CATS, NUTS} == set(await found(alice, ASKED, min_score=0.0))
    assert CATS in await shown(alice, ASKED, min_score=0.0)


async def test_what_is_very_near_is_shown_whatever_is_read_of_it(ports, clock):
    reader = Reader(lambda _: 0.0)
    alice = await stated(reader, clock, ports, CATS)
    assert CATS in await shown(alice, CATS)
    assert not reader.asked
    assert [CATS] == await found(alice, CATS)
    assert [(CATS, CATS)] == reader.asked  # for its score


async def test_searches_are_read_where_that_is_configured_alone(ports, clock):
    alice = await stated(Reader(lambda _: 0.0), clock, ports, CATS)
    alice.ports = replace(alice.ports, reads_searches=False)
    assert [CATS] == await found(alice, ASKED)
    assert CATS not in await shown(alice, ASKED)


async def test_scores_follow_it_and_fall_and_the_leg_says_it(ports, clock):
    alice = await stated(Reader(lambda text: 0.95 if "nuts" in text else 0.05), clock, ports, NUTS, CATS)
    result = await alice.search(ASKED, explain=True)
    scores = {hit.memory.content: hit.score for hit in result.hits}
    unread = replace(alice.ports, answer_reader=None)
    before = {hit.memory.content: hit.score for hit in (await Local(unread, clock, user_id="alice").search(ASKED)).hits}
    assert list(before) == list(scores)  # the order stays
    assert sorted(scores.values(), reverse=True) == [*scores.values()]
    assert scores[CATS] < before[CATS]
    legs = {hit.memory.content: [leg for leg in hit.explanation if leg.leg.value == "reader"] for hit in result.hits}
    assert [(1, 0.95)] == [(leg.rank, leg.score) for leg in legs[NUTS]]
    assert [(2, 0.05)] == [(leg.rank, leg.score) for leg in legs[CATS]]


async def test_why_a_memory_is_missing_says_that_it_was_read(ports, clock):
    alice = await stated(Reader(lambda _: 0.0), clock, ports)
    memory = (await alice.add(CATS)).memory
    result = await alice.search(ASKED, why_not=memory.id)
    assert ((), ("reader",)) == (result.hits, result.miss.reasons)


async def test_nothing_is_hidden_beside_what_is_too_long_or_not_english(ports, clock):
    reader = Reader(lambda text: None if "cats" in text else 0.0)
    alice = await stated(reader, clock, ports, NUTS, CATS)
    assert 2 == len(await found(alice, ASKED))
    nothing = Reader(lambda _: 0.0)
    bob = Local(replace(ports, answer_reader=nothing, reads_searches=True), clock, user_id="bob")
    for text in ("Gegen Nüsse bin ich allergisch", "Gegen Katzen bin ich allergisch"):
        await bob.add(text)
    assert 2 == len(await found(bob, "allergisch gegen"))
    assert await found(bob, "What does allergisch gegen mean?")
    asked = len(nothing.asked)
    assert await found(bob, "What " + "allergisch gegen Nüsse und Katzen " * (MOST_CHARACTERS // 30))
    assert asked == len(nothing.asked)


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
    unread = Local(replace(alice.ports, answer_reader=None), clock, user_id="alice")
    (before,) = [one for one in (await unread.search(ASKED)).hits if one.memory.id == hit.memory.id]
    assert (text, before.score) == (hit.memory.content, hit.score)
    assert before.score < 0.9


async def test_members_of_a_chat_hide_nothing_of_each_other(ports, clock):
    reading = replace(ports, answer_reader=Reader(lambda text: 0.9 if "hives" in text else 0.01), reads_searches=True)
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
    await alice.append("talk", [MessageDraft(content="I am allergic to nuts", role="user")])
    await alice.context(ASKED)
    assert not reader.asked


async def test_where_reading_is_behind_sandboxes_are_not_read_for_and_the_host_is(ports, clock):
    reader = Reader(lambda _: 0.0, is_behind=True)
    alice = await stated(reader, clock, ports, CATS)
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g1")
    result = await recall(Query(text=ASKED, limit=5), sandbox, alice.ports, now=clock())
    assert ([CATS], []) == ([hit.memory.content for hit in result.hits], reader.asked)
    assert [] == await found(alice, ASKED)


async def test_what_is_urgent_is_read_first():
    order: list[str] = []
    loop, started, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def read(texts):
        loop.call_soon_threadsafe(started.set)
        goes_on.wait(PATIENCE_S)
        order.extend(texts)
        return list(texts)

    reader = BackgroundReader("test", lambda: read, rests=False)
    tasks = [asyncio.ensure_future(reader.read(["a"]))]
    await started.wait()
    tasks += [asyncio.ensure_future(reader.read([one], urgent=one == "urgent")) for one in ("b", "c", "urgent")]
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(*tasks)
    assert ["a", "urgent", "b", "c"] == order
    reader.close()


def test_a_context_of_a_daemon_leaves_out_what_does_not_answer(folder):
    with running(folder) as daemon, daemon.client("alice") as alice:
        for text in (ANSWER, NEAR, OTHER, "I walk the dog at six", "Tea with milk, no sugar"):
            alice.add(text)
        built = alice.context("Do I own a car?", sections=("relevant_memory",))
        assert "Volvo" in built.text
        assert "sugar" not in built.text
