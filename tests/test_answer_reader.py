"""The answer reader: the model, its file, and the thread that it reads in."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from memoryd.daemon.config import Config, EmbeddingConfig, ReadersConfig, SearchConfig
from memoryd.daemon.readers import load_every_finder, make_answer_reader, make_change_reader, make_keeping_reader
from memoryd.domain.retrieval.answers_read import OF_EACH
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import data_file
from memoryd.embedding.readers.answer import answer_reader
from memoryd.embedding.readers.reader import AT_ONCE, FEW, MOST_WAITING
from memoryd.embedding.readers.reader import Reader as BackgroundReader
from memoryd.embedding.readers.retrieval import retrieval_encoder
from memoryd.embedding.readers.texts import MOST_ANSWER, MOST_ASKED
from memoryd.embedding.readers.thresholds import ANSWERING
from tests.readers.answer_pairs import with_notes_of
from tests.readers.voices import voices
from tests.support import PATIENCE_S

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
            if None in read:
                assert len(question.text) > MOST_ASKED  # a question with more pieces than are read
                continue
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
    assert [None] == await reader.read([(long * 40 + ASKED, ANSWER)])
    reader.close()


def test_it_is_switched_off_alone_and_with_the_vectors_and_a_directory_without_it_is_refused(tmp_path):
    assert make_answer_reader(Config()) is not None
    assert make_answer_reader(Config(readers=ReadersConfig(answer="none"))) is None
    assert make_answer_reader(Config(embedding=EmbeddingConfig(provider="none"))) is None
    for wrong in ("/no/such", ""):
        with pytest.raises(
            ModelRefused, match=rf"readers.answer is '{wrong}'; it must be builtin, none, or a directory"
        ):
            make_answer_reader(Config(readers=ReadersConfig(answer=wrong)))
    with pytest.raises(ModelRefused, match="answer.npz is not there; make it by: make train-readers READER=answer"):
        asyncio.run(answer_reader(tmp_path).read([(ASKED, ANSWER)]))
    with pytest.raises(ModelRefused, match=r"search.read_answers is true, and nothing reads answers"):
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
    with pytest.raises(ModelRefused, match="cannot be read: it is no whole .npz file; make it by"):
        make(config)


async def test_a_question_with_more_pieces_than_are_read_is_not_judged():
    reader = answer_reader()
    asked = (
        "Does anybody in our family have a problem with shellfish or nuts, and if so, which dishes of grandma's"
        " gingery Thai-Peruvian kitchen must we leave off Saturday's buffet?"
    )
    assert [None] == await reader.read([(asked * 2, ANSWER)])
    assert await reader.read([(asked[:60], ANSWER)]) != [None]
    reader.close()


class Held:
    """A reader in the background that reads nothing until it is let go, and keeps what it has read."""

    def __init__(self) -> None:
        self.order: list[list[str]] = []
        self.started = asyncio.Event()
        self._loop, self._goes_on = asyncio.get_running_loop(), threading.Event()
        self.let_go = self._goes_on.set
        self.reader = BackgroundReader("test", lambda: self._read, rests=False)

    def _read(self, texts):
        self._loop.call_soon_threadsafe(self.started.set)
        self._goes_on.wait(PATIENCE_S)
        self.order.append(list(texts))
        return list(texts)


async def test_what_is_urgent_is_read_first():
    held = Held()
    reader = held.reader
    tasks = [asyncio.ensure_future(reader.read(["a"]))]
    await held.started.wait()
    tasks += [asyncio.ensure_future(reader.read([one], urgent=one == "urgent")) for one in ("b", "c", "urgent")]
    await asyncio.sleep(0)
    held.let_go()
    await asyncio.gather(*tasks)
    assert ["a", "urgent", "b", "c"] == [one for some in held.order for one in some]
    reader.close()


async def test_who_waits_when_it_is_closed_is_told_and_nothing_more_is_read():
    held = Held()
    reader = held.reader
    first = asyncio.ensure_future(reader.read(["a"] * (AT_ONCE + 1)))
    await held.started.wait()
    second = asyncio.ensure_future(reader.read(["b"]))
    await asyncio.sleep(0)
    reader.close()
    held.let_go()
    for one in (first, second, asyncio.ensure_future(reader.read(["c"]))):
        with pytest.raises(ModelRefused, match="the test reader is closed"):
            await asyncio.wait_for(one, PATIENCE_S)
    assert [["a"] * FEW] == held.order


async def test_all_of_what_is_urgent_is_read_before_the_rest_of_what_is_not():
    held = Held()
    reader = held.reader
    tasks = [asyncio.ensure_future(reader.read(["a"] * 3))]
    await held.started.wait()
    tasks.append(asyncio.ensure_future(reader.read(["u"] * (AT_ONCE + 1), urgent=True)))
    await asyncio.sleep(0)
    held.let_go()
    found = await asyncio.gather(*tasks)
    assert ["aa", "u" * AT_ONCE, "u", "a"] == ["".join(some) for some in held.order]
    assert [["a"] * 3, ["u"] * (AT_ONCE + 1)] == found
    reader.close()


async def test_it_is_behind_for_the_host_only_where_much_of_the_host_s_waits():
    held = Held()
    reader = held.reader
    tasks = [asyncio.ensure_future(reader.read(["a"]))]
    await held.started.wait()
    gone = asyncio.ensure_future(reader.read(["gone"] * (MOST_WAITING + 1)))
    await asyncio.sleep(0)
    assert reader.is_behind()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert not reader.is_behind()
    for urgent, told in ((False, (True, False)), (True, (True, True))):
        tasks.append(asyncio.ensure_future(reader.read(["b"] * (MOST_WAITING + 1), urgent=urgent)))
        await asyncio.sleep(0)
        assert told == (reader.is_behind(), reader.is_behind(urgent=True))
    held.let_go()
    await asyncio.gather(*tasks)
    assert (False, False) == (reader.is_behind(), reader.is_behind(urgent=True))
    reader.close()
