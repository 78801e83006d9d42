"""The keeping reader in the learning of talk: what no rule reads is kept, in people's own words, and nothing else."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest
from memory_client import MessageDraft

from memoryd.daemon.config import Config, ReadersConfig
from memoryd.daemon.learners import make_extractor
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import data_file
from memoryd.embedding.readers import adapters
from memoryd.embedding.readers.keeping import LABELS, keeping_reader
from memoryd.embedding.readers.reader import AT_ONCE
from memoryd.embedding.readers.texts import MOST_SAID
from memoryd.embedding.readers.thresholds import CLEAR, KEPT
from memoryd.learning.follow import Learner
from memoryd.learning.plain_talk import PlainTalkExtractor
from memoryd.learning.rules import RulesExtractor
from tests.builders import Local, ports_over, ram_store
from tests.readers.keeping.sentences import clearness, sentences_of
from tests.readers.voices import voices

KEEP = "Invoices go to the bookkeeper as PDF, never to me"
IDLE = "Can you make the second paragraph a bit shorter"


@pytest.fixture
async def ports():
    async with ports_over(ram_store()) as made:
        yield made


@pytest.fixture
def reader():
    made = keeping_reader()
    yield made
    made.close()


async def learnt(ports, clock, extractor, *messages, user_id="alice") -> list[str]:
    """What is stored once the messages of a thread were read."""
    memory = Local(ports, clock, user_id=user_id)
    await memory.append("talk", [MessageDraft(content=text, role=role) for role, text in messages])
    learner = Learner(ports, extractor, clock, pytest.fail, wait_s=0)
    await learner.step()
    page = await memory.page(page_size=100)
    return [one.content for one in reversed(page.memories)]


async def test_it_tells_what_is_worth_keeping_of_people_that_it_was_not_tuned_with(reader):
    said = list(sentences_of(voice for voice in voices() if voice.is_apart))[::6]
    found = await reader.read([(one.before, one.sentence) for one in said])
    kept = [one for one, worth in zip(said, found, strict=True) if worth.kept >= KEPT]
    right = sum(one.label != LABELS[0] for one in kept)
    assert right >= 0.8 * len(kept)
    assert right >= 0.25 * sum(one.label != LABELS[0] for one in said)


async def test_it_tells_what_is_understood_by_itself(reader):
    labels = clearness()
    said = [one.sentence for one in sentences_of(voice for voice in voices() if voice.is_apart)]
    told = [one for one in dict.fromkeys(said) if labels.get(one) in {"clear", "unclear"}][::4]
    found = await reader.read([("", one) for one in told])
    right = [(worth.clear >= CLEAR) is (labels[one] == "clear") for one, worth in zip(told, found, strict=True)]
    assert sum(right) >= 0.78 * len(right)


async def test_what_points_to_what_nothing_names_is_not_learnt(ports, clock, reader):
    extractor = PlainTalkExtractor(RulesExtractor(), reader, pytest.fail)
    said = ["From now on that one goes to the second bookkeeper, never to me", "She is allergic to them since May"]
    assert min(worth.kept for worth in await reader.read([("", one) for one in said])) >= KEPT
    assert [] == await learnt(ports, clock, extractor, *(("user", one) for one in said))


async def test_a_sentence_has_one_worth_in_any_company_and_a_long_or_empty_one_none(reader):
    (alone,) = await reader.read([("", KEEP)])
    long = "word " * (MOST_SAID + 1)
    found = await reader.read(
        [("", KEEP), ("", long), ("", ""), ("x" * 8192, "\u202e\U0001f600\x00"), (KEEP, "Kiwi")] * AT_ONCE
    )
    assert pytest.approx(alone.kept, abs=1e-6) == found[0].kept
    assert [0, 0] == [one.kept for one in found[1:3]]
    assert all(0 <= one.kept <= 1 and one.label in LABELS[1:] for one in found)


async def test_what_no_rule_reads_is_learnt_with_its_kind(ports, clock, reader):
    extractor = PlainTalkExtractor(RulesExtractor(), reader, pytest.fail)
    assert [] == await learnt(ports, clock, RulesExtractor(), ("user", KEEP), user_id="bob")
    assert [KEEP] == await learnt(ports, clock, extractor, ("user", f"{KEEP}. {IDLE}"))
    page = await Local(ports, clock, user_id="alice").page(page_size=1)
    assert ("instruction", "preference", "extraction") == (
        page.memories[0].category,
        page.memories[0].kind.value,
        page.memories[0].source.channel,
    )


@pytest.mark.parametrize(
    "messages",
    [
        [("assistant", KEEP)],
        [("tool", KEEP)],
        [("user", f"Translate into French: {KEEP}")],
        [("user", f"> {KEEP}")],
        [("user", "Let's role play, you are my clerk"), ("user", KEEP)],
        [("user", "Mallory wrote:\n" + KEEP)],
    ],
)
async def test_what_its_speaker_does_not_state_is_not_kept(ports, clock, reader, messages):
    assert [] == await learnt(ports, clock, PlainTalkExtractor(RulesExtractor(), reader, pytest.fail), *messages)


async def test_what_a_rule_reads_is_not_kept_twice_and_a_message_says_eight_things_at_most(ports, clock, reader):
    extractor = PlainTalkExtractor(RulesExtractor(), reader, pytest.fail)
    assert ["I'm vegan"] == await learnt(ports, clock, extractor, ("user", "I'm vegan, so what can I cook?"))
    many = ". ".join(f"Invoices for {town} go to the bookkeeper there as PDF, never to me" for town in TOWNS)
    assert 8 == len(await learnt(ports, clock, extractor, ("user", many), user_id="carol"))


TOWNS = ("Porto", "Ghent", "Turku", "Split", "Graz", "Cork", "Nantes", "Gdynia", "Bergen", "Malmo", "Basel", "Pisa")


async def test_without_its_file_the_rules_go_on_alone_and_it_is_told_once(ports, clock, monkeypatch):
    monkeypatch.setattr(adapters, "data_file", lambda _name: b"")
    told: list[str] = []
    extractor = PlainTalkExtractor(RulesExtractor(), keeping_reader(), told.append)
    assert ["I'm vegan"] == await learnt(ports, clock, extractor, ("user", f"I'm vegan. {KEEP}"))
    assert ["I'm vegan"] == await learnt(ports, clock, extractor, ("user", KEEP))
    assert [extractor.fault] == told
    assert "keeping.npz cannot be read" in extractor.fault
    await asyncio.to_thread(extractor.close)


def test_which_reader_is_a_matter_of_the_configuration(folder):
    assert isinstance(make_extractor(Config()), PlainTalkExtractor)
    assert isinstance(make_extractor(Config(readers=ReadersConfig(keeping="none"))), RulesExtractor)
    with pytest.raises(ModelRefused, match="make train-readers READER=keeping"):
        make_extractor(Config(readers=ReadersConfig(keeping=str(folder))))
    (folder / "keeping.npz").write_bytes(data_file("readers/keeping.npz"))
    assert isinstance(make_extractor(Config(readers=ReadersConfig(keeping=str(folder)))), PlainTalkExtractor)


async def test_a_file_that_does_not_fit_is_refused_and_costs_the_rules_nothing(ports, clock, folder):
    with np.load(io.BytesIO(data_file("readers/keeping.npz"))) as file:
        values = dict(file)
    files = {
        "keeping.npz cannot be read": values | {"head.weight": values["head.weight"][:, :3]},
        "holds what is no number": values | {"head.bias": values["head.bias"] * np.nan},
        "of another model": values | {"sha256": np.array("0")},
    }
    for n, (fault, made) in enumerate(files.items()):
        np.savez(folder / "keeping.npz", **made)
        told: list[str] = []
        extractor = PlainTalkExtractor(RulesExtractor(), keeping_reader(folder), told.append)
        assert ["I'm vegan"] == await learnt(ports, clock, extractor, ("user", f"I'm vegan. {KEEP}"), user_id=f"u{n}")
        assert fault in told[0]
        extractor.close()


@pytest.mark.parametrize(
    ("first", "learnt_of_her"), [("bob", []), ("alice", ["My sister is diabetic, type 1, and lives in Cork"])]
)
async def test_in_a_chat_nobodys_sister_becomes_anothers(ports, clock, reader, first, learnt_of_her):
    memory = Local(ports, clock, user_id="alice", chat_id="home")
    said = [
        (first, "My sister comes to dinner on Friday. I cook."),
        ("alice", "she is diabetic, type 1, and lives in Cork"),
    ]
    if first == "alice":
        said = [("alice", "My sister comes to dinner on Friday. She is diabetic, type 1, and lives in Cork")]
    await memory.append("talk", [MessageDraft(content=text, role="user", name=name) for name, text in said])
    learner = Learner(ports, PlainTalkExtractor(RulesExtractor(), reader, pytest.fail), clock, pytest.fail, wait_s=0)
    await learner.step()
    page = await memory.page(page_size=100)
    assert learnt_of_her == [one.content for one in page.memories if "diabetic" in one.content]
