"""The models that read two statements together: the packaged one, and one of your own."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from memoryd.daemon.config import Config, ReadersConfig
from memoryd.daemon.readers import make_change_reader
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.change import builtin_reader, directory_reader
from memoryd.embedding.readers.reader import AT_ONCE, Reader
from memoryd.embedding.readers.texts import MOST_PIECES
from memoryd.embedding.readers.thresholds import CONTESTED
from tests.readers.change.pairs import groups_apart, strangers_pairs
from tests.support import PATIENCE_S
from tests.test_reranker import GOLD, tokenizer_of_words

OLD, NEW = "I rent a flat in Leeds", "We handed back the keys of the flat in Leeds on Friday"


async def test_the_packaged_model_reads_changes_of_any_words_and_lets_others_be():
    reader = builtin_reader()
    strangers = [pair for pairs in strangers_pairs().values() for pair in pairs]
    assert 0.7 <= await share(reader, [pair for pair in strangers if pair.is_change])
    assert 0.06 >= await share(reader, [pair for pair in strangers if not pair.is_change])
    assert 0.02 >= await share(reader, groups_apart()[::2])
    reader.close()


async def share(reader, pairs) -> float:
    """Which share of some pairs the model is sure of."""
    scores = await reader.read([(pair.old, pair.new) for pair in pairs])
    return sum(score >= CONTESTED for score in scores) / len(pairs)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I take metformin twice a day", "My doctor says I no longer need metformin, so the pill box is empty"),
        ("I write my notes in Evernote", "Exported everything out of Evernote and deleted the account"),
        ("I dislike cats", "A stray adopted us, and I've gone soft, cats are wonderful"),
        ("My rent is 950 euros", "My landlord raised the rent, I pay 1020 euros a month now"),
        ("I report to Sarah", "Sarah left the company, so Kofi is my boss now"),
    ],
)
async def test_what_the_rules_miss_among_the_pairs_is_read(old, new):
    reader = builtin_reader()
    (score,) = await reader.read([(old, new)])
    reader.close()
    assert score >= CONTESTED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Я люблю кошек", "Я живу в Москве"),
        ("मुझे बिल्लियाँ पसंद हैं", "मैं दिल्ली में रहता हूँ"),
        ("ฉันชอบแมว", "ฉันอาศัยอยู่ในกรุงเทพ"),
        ("من گربه‌ها را دوست دارم", "من در تهران زندگی می‌کنم"),
        ("Μου αρέσουν οι γάτες", "Μένω στην Αθήνα"),
        ("אני אוהב חתולים", "I live in Haifa"),
        ("私は東京に住んでいます", "猫が好きです"),
    ],
)
async def test_a_script_of_which_it_knows_letters_alone_is_never_a_change(old, new):
    reader = builtin_reader()
    assert [0.0, 0.0] == await reader.read([(old, new), (new, old)])
    reader.close()


async def test_a_pair_has_one_score_in_any_company_and_a_long_or_empty_one_none():
    reader = builtin_reader()
    (alone,) = await reader.read([(OLD, NEW)])
    long = "word " * (MOST_PIECES + 1)
    pairs = [(OLD, NEW), (long, NEW), (OLD, long), ("", NEW), (OLD, "x" * 8192), ("\u202e\U0001f600" * 9, "\x00")]
    scores = await reader.read(pairs * AT_ONCE)
    assert [pytest.approx(alone, abs=1e-6), 0, 0, 0, 0] == scores[:5]
    assert all(0 <= score <= 1 for score in scores)
    reader.close()


async def test_a_reader_that_is_closed_reads_nothing_and_keeps_nobody_waiting():
    for is_loaded in (False, True):
        reader = builtin_reader()
        if is_loaded:
            await reader.read([(OLD, NEW)])
        reader.close()
        with pytest.raises(ModelRefused, match="closed"):
            await reader.read([(OLD, NEW)])


def a_directory(folder, labels: dict[str, str], *, logits: int = 3):
    """A model that is the surer of label 2 the oftener a pair says "gold"."""
    tokenizer_of_words().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"id2label": labels}))
    constants = {"gold": np.array(GOLD), "axis": np.array([1]), "much": np.array([[0, 0, 4][:logits]], np.float32)}
    nodes = [
        helper.make_node("Equal", ["input_ids", "gold"], ["is_gold"]),
        helper.make_node("Cast", ["is_gold"], ["golds"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["golds", "axis"], ["count"], keepdims=1),
        helper.make_node("MatMul", ["count", "much"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "nli",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "length"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", logits])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    onnx.save(made, folder / "model.onnx")
    return folder


LABELS = {"0": "entailment", "1": "neutral", "2": "CONTRADICTION"}


async def test_a_model_of_your_own_is_read_by_the_label_that_it_names(folder):
    config = Config(readers=ReadersConfig(change=str(a_directory(folder, LABELS))))
    reader = make_change_reader(config)
    one, two, none, long = await reader.read(
        [("tea", "gold"), ("gold", "gold one"), ("tea", "tea"), ("gold " * MOST_PIECES * 2, "gold")]
    )
    reader.close()
    assert pytest.approx([np.exp(4) / (2 + np.exp(4)), np.exp(8) / (2 + np.exp(8)), 1 / 3]) == [one, two, none]
    assert 0 == long


def test_a_directory_without_what_it_takes_is_refused(folder):
    with pytest.raises(ModelRefused, match="builtin, none, or"):
        make_change_reader(Config(readers=ReadersConfig(change="off")))
    with pytest.raises(ModelRefused, match="neither"):
        make_change_reader(Config(readers=ReadersConfig(change=str(folder))))
    with pytest.raises(ModelRefused, match='no label "contradiction"'):
        directory_reader(a_directory(folder, {"0": "yes", "1": "no"}))
    with pytest.raises(ModelRefused, match="no logits for the labels"):
        directory_reader(a_directory(folder, LABELS, logits=2))
    (folder / "config.json").write_text("[]")
    with pytest.raises(ModelRefused, match=r"config\.json"):
        directory_reader(folder)
    (folder / "config.json").write_text(json.dumps({"id2label": LABELS}))
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelRefused, match="tokenizer"):
        directory_reader(folder)


def test_none_is_none():
    assert make_change_reader(Config(readers=ReadersConfig(change="none"))) is None


async def test_what_nobody_waits_for_any_more_is_not_read():
    read, begun = list[str](), threading.Event()

    def load():
        def read_some(texts):
            begun.wait(PATIENCE_S)
            read.extend(texts)
            return list(texts)

        return read_some

    reader = Reader("some", load)
    first, gone, last = (asyncio.ensure_future(reader.read([text])) for text in ("first", "gone", "last"))
    await asyncio.sleep(0)  # all three have asked
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    begun.set()
    assert ["first", "last"] == [*await first, *await last]
    assert ["first", "last"] == read
    reader.close()
