"""No permitted call costs more than its bytes: texts that once took hours, and texts made of the rules' own words."""

from __future__ import annotations

import contextlib
import json
import random
import threading

import pytest
from memory_client import Draft, MemorydError, MessageDraft

from memoryd.knowledge.claims.giving_up import gives_up
from memoryd.knowledge.claims.statement import statement_of
from memoryd.knowledge.secrets import Given, Looks, SecretDetector
from memoryd.knowledge.secrets.json_masking import mask_json
from memoryd.knowledge.secrets.masking import MASK, mask_text
from tests.attack.slow_texts import READERS, growth, texts
from tests.attack.victim import FULL, undisturbed
from tests.support import figures

LENGTH = 1000  # of a statement at the most; readers of longer texts cut them into parts
LEAST_S, MOST_GROWTH = 0.05, 9.0  # four times the text may take four times as long, sixteen times where it is square
SLOW = {
    "a key of 400 KB before 60,000 numbers": {"k" * 400_000: [*range(60_000)]},
    "a key that tells of passwords": {"password " * 40_000: [*range(60_000)]},
    "a list of passwords": {"passwords": [f"a{n}b7" for n in range(60_000)]},
    "JSON in JSON in JSON": {"a": json.dumps({"b": json.dumps({"c": ["the password is hunter2x"] * 9_000})})},
}


@pytest.fixture(scope="module")
def detector() -> SecretDetector:
    return SecretDetector()


@pytest.mark.parametrize("held", SLOW.values(), ids=SLOW.keys())
def test_json_is_looked_through_within_a_budget_and_stays_json(detector, held):
    looked: list[int] = []
    beside: list[int] = []  # a number, with the beginning of its name

    def find(text: str) -> object:
        (beside if text[-1:].isdigit() else looked).append(len(text))
        return detector.find(text)

    looks = Looks(find, characters := len(json.dumps(held)), str.strip)
    assert dict is type(json.loads(mask_json(json.dumps(held), looks)))
    assert sum(looked) + sum(beside) <= 11 * characters
    assert max(beside, default=0) <= 160


def test_what_is_over_the_budget_is_masked_whole_and_what_is_within_it_stays(detector):
    plain = {"steps": [f"step {n} went well" for n in range(20_000)], "vector": [n / 7 for n in range(20_000)]}
    assert json.dumps(plain) == detector.mask_json(json.dumps(plain))
    told = detector.mask(" ".join(f"the password is hunter{n}x, and so on." for n in range(20_000)))
    assert MASK in told
    assert "hunter" not in told


def test_a_call_that_has_used_up_its_looks_is_looked_at_no_more():
    looked: list[str] = []
    looks = Looks(looked.append, 10)
    assert "x" * 32_840 == mask_text("x" * 32_840, looks)
    assert [MASK] * 3 == [mask_text("plain words", looks) for _ in range(4)][1:]
    assert len(looked) <= 2


def test_looking_ends_when_nobody_waits_for_it(detector):
    gone = iter([False, False, True])
    with pytest.raises(Given):
        detector.masker(100, lambda: next(gone)).mask_json('{"a": "one", "b": "two", "c": "three"}')


@pytest.mark.parametrize("word", ["my ", "our ", "A ", "I ", "A-", "quit my ", "no longer the ", "used to have "])
def test_a_word_that_is_repeated_is_read_in_the_time_of_any_text(word):
    gives_up("x" + word * 20_000)  # it took the square: an hour
    for read in (READERS["statement"], statement_of):
        seconds = growth(read, word, LENGTH)
        assert seconds[1] < max(LEAST_S, MOST_GROWTH * seconds[0])


def test_a_long_message_that_is_costly_keeps_nobody_waiting(world, victim):
    own = world.sandbox(user_id="mallory", chat_ids=("m",), quota={"calls_per_second": 0})
    over = threading.Event()

    def attack() -> None:
        with world.inside(own, timeout_s=2) as inside:
            while not over.is_set():
                for held in SLOW.values():
                    with contextlib.suppress(MemorydError):  # its time is up
                        inside.append("t", MessageDraft(content="x", metadata=json.dumps(held)))
                with contextlib.suppress(MemorydError):
                    inside.add_batch([Draft(content=f"{n} " + "my " * 330) for n in range(50)])

    with undisturbed(world, victim, "costly texts"):
        thread = threading.Thread(target=attack)
        thread.start()
        try:
            with world.inside(victim) as inside:
                for n in range(20 if FULL else 3):
                    assert inside.append("mine", MessageDraft(content=f"{n} " + "word " * 20_000)).stored
        finally:
            over.set()
            thread.join()


def test_no_reader_takes_the_square_of_its_text():
    rng, slow, worst = random.Random(11), [], 0.0
    for seed in texts(rng, 1_500 if FULL else 25):
        for name, read in READERS.items():
            quarter, whole = growth(read, seed, LENGTH)
            worst = max(worst, whole)
            if whole > max(LEAST_S, MOST_GROWTH * quarter):
                slow.append((name, seed, quarter, whole))
    figures.append(f"texts of the rules' own words: a text of {LENGTH} took {1e3 * worst:.0f} ms at the most")
    assert [] == slow
