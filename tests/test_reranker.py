"""A cross-encoder orders the best hits, within its time, and changes nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import tokenizers
from onnx import TensorProto, helper, numpy_helper
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from memoryd.daemon.config import Config, SearchConfig
from memoryd.domain.retrieval import rerank
from memoryd.domain.writing.add import add
from memoryd.embedding import reranker
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.reranker import CrossEncoder
from memoryd.model.caller import Caller
from memoryd.model.memory import Draft
from memoryd.model.trust import Trust
from tests.builders import NOW, HashEncoder, Local, ports_over, ram_store

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "gold", "silver", "one", "two", "three"]
GOLD = WORDS.index("gold")


def tokenizer_of_words() -> tokenizers.Tokenizer:
    """Whole words, and pairs as BERT has them."""
    made = tokenizers.Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))  # noqa: S106  no password
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


def model_in(folder: Path, *, logits: int = 1) -> Path:
    """A model whose logit is 4 · (how often the text says "gold") − 2."""
    tokenizer_of_words().save(str(folder / "tokenizer.json"))
    constants = {"gold": np.array(GOLD), "four": np.full(logits, 4, np.float32), "two": np.full(logits, 2, np.float32)}
    nodes = [
        helper.make_node("Equal", ["input_ids", "gold"], ["is_gold"]),
        helper.make_node("Cast", ["is_gold"], ["golds"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["golds", "second"], ["both"]),
        helper.make_node("ReduceSum", ["both", "axis"], ["count"], keepdims=1),
        helper.make_node("Mul", ["count", "four"], ["much"]),
        helper.make_node("Sub", ["much", "two"], ["logits"]),
    ]
    constants["axis"] = np.array([1])
    shape = ["n", "length"]
    graph = helper.make_graph(
        nodes,
        "cross",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "token_type_ids")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", logits])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    (folder / "onnx").mkdir()
    onnx.save(made, folder / "onnx" / "model.onnx")
    return folder


async def test_the_best_hits_are_ordered_by_what_the_model_reads(folder, clock):
    config = Config(search=SearchConfig(rerank=str(model_in(folder)), rerank_budget_s=60.0))
    async with ports_over(ram_store(), config, encoder=HashEncoder()) as ports:
        alice = Local(ports, clock, user_id="alice")
        for text in ("tea tea tea one", "tea silver two", "tea gold gold three and much more beside it"):
            await alice.add(text)
        found = await alice.search("tea", explain=True, min_score=0.0)
        assert "tea gold gold three and much more beside it" == found.hits[0].memory.content
        by_leg = [{leg.leg.value: leg for leg in hit.explanation}["rerank"] for hit in found.hits]
        assert [1, 2, 3] == [leg.rank for leg in by_leg]
        assert pytest.approx(1 / (1 + np.exp(-6))) == by_leg[0].score
        one = await alice.search("tea", limit=1, min_score=0.0)
        assert ["tea gold gold three and much more beside it"] == [hit.memory.content for hit in one.hits]
        ports.close()


async def test_what_there_is_no_time_for_keeps_its_place(folder, monkeypatch):
    model = CrossEncoder(model_in(folder), budget_s=0.2)
    run, now_s = model._logits, [0.0]

    def slow(question, texts):
        now_s[0] += 0.015 * len(texts)
        return run(question, texts)

    model._logits = slow
    monkeypatch.setattr(reranker, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    values = await model.scores("tea", ["gold"] * 50)
    model.close()
    assert 0 < len(values) * 0.015 <= 0.2
    assert (len(values) + reranker.AT_ONCE) * 0.015 > 0.2


async def test_places_for_higher_trust_are_kept(folder, clock, monkeypatch):
    monkeypatch.setattr(rerank, "MOST_READ", 9)
    config = Config(search=SearchConfig(rerank=str(model_in(folder)), rerank_budget_s=60.0))
    async with ports_over(ram_store(), config, encoder=HashEncoder()) as ports:
        host = Caller(user_id="alice")
        sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
        await add(Draft(content="tea silver one"), host, ports, now=NOW)
        for n in range(6):
            await add(Draft(content=f"tea gold gold {n}", key=f"k{n}"), sandbox, ports, now=NOW)
        hits = (await Local(ports, clock, user_id="alice").search("tea", limit=5, min_score=0.0)).hits
        assert (5, "tea silver one") == (len(hits), hits[-1].memory.content)
        ports.close()


def test_a_model_that_is_none_for_ranking_is_refused(folder):
    with pytest.raises(ModelRefused, match="no single logit"):
        CrossEncoder(model_in(folder, logits=3), budget_s=1)
    with pytest.raises(ModelRefused, match="neither"):
        CrossEncoder(folder / "onnx", budget_s=1) if not (folder / "onnx" / "model.onnx").unlink() else None
