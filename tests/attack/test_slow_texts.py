"""No permitted call costs more than its bytes: texts that once took hours, and texts made of the rules' own words."""

from __future__ import annotations

import contextlib
import json
import random
import threading

import pytest
from memory_client import Draft, MemorydError, MessageDraft

from memoryd.knowledge.secrets import Given, Looks, SecretDetector
from memoryd.knowledge.secrets.json_masking import mask_json
from memoryd.knowledge.secrets.masking import MASK, mask_text
from memoryd.knowledge.statement.reader import statement_of
from tests.attack.slow_texts import READERS, grows_too_fast, growth, texts
from tests.attack.victim import FULL, undisturbed
from tests.support import figures

LENGTH = 1000  # of a statement at the most; readers of longer texts cut them into parts
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


def test_a_message_that_has_used_up_its_looks_is_looked_at_once_and_names_decide():
    looked: list[str] = []

    def find(text: str) -> object:
        looked.append(text)
        return "hunter2" in text

    looks = Looks(find, 10, lambda name: "secret" in name)
    assert "x" * 33_000 == mask_text("x" * 33_000, looks)
    assert looks.are_used_up
    assert (["plain words"], MASK) == ([mask_text("plain words", looks)], mask_text("all of hunter2 here", looks))
    looked.clear()
    held = {"names": ["Al", "Bo", 12], "secret": "falcon", "secrets": [4411, "Al"]}
    kept = json.loads(mask_json(json.dumps(held), looks))
    assert {"names": ["Al", "Bo", 12], "secret": MASK, "secrets": [MASK, MASK]} == kept
    assert len(looked) == 7  # each key and each string once


def test_a_list_under_a_harmless_name_takes_no_other_message_with_it(detector):
    many = {
        "secret_santa_participants": [f"{chr(97 + n % 26)}{chr(97 + n % 25)}" for n in range(6_000)],
        "town": "Ghent",
    }
    masked = json.loads(detector.mask_json(json.dumps(many, separators=(",", ":"))))
    assert ({"secret_santa_participants", "town"}, "Ghent") == (set(masked), masked["town"])


def test_looking_ends_when_nobody_waits_for_it(detector):
    gone = iter([False, False, True])
    with pytest.raises(Given):
        detector.masker(100, lambda: next(gone)).mask_json('{"a": "one", "b": "two", "c": "three"}')


@pytest.mark.parametrize("word", ["my ", "our ", "A ", "I ", "A-", "quit my ", "no longer the ", "used to have "])
def test_a_word_that_is_repeated_is_read_in_the_time_of_any_text(word):
    for read in (READERS["statement"], statement_of):  # it took the square: an hour
        assert not grows_too_fast(*growth(read, word, LENGTH))


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
            if grows_too_fast(quarter, whole):
                slow.append((name, seed, quarter, whole))
    figures.append(f"texts of the rules' own words: a text of {LENGTH} took {1e3 * worst:.0f} ms at the most")
    assert [] == slow
