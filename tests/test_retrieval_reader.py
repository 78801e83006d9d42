"""The packaged encoder as it is tuned to find answers: on by default, switched off, and one of your own."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import numpy as np
import pytest

from memoryd.daemon.config import Config, EmbeddingConfig, ReadersConfig
from memoryd.daemon.wiring import make_embedder
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import MODEL_SHA256, builtin_encoder
from memoryd.embedding.readers.retrieval import retrieval_encoder
from tests.builders import open_duckdb
from tests.index_helpers import OWNER
from tests.readers.voices import voices
from tests.support import running
from tests.test_reembed import vectors_of
from tests.test_reembed_daemon import until_embedded

APART = [voice for voice in voices() if voice.is_apart][::6]


def shares_first(encoder):
    """Which share of the questions of voices that nothing was tuned with is nearest to what answers it."""
    first = []
    for voice in APART:
        asked = [question for question in voice.questions if question.answers]
        stored = encoder.encode([one.text for one in voice.store], query=False)
        near = encoder.encode([one.text for one in asked], query=True) @ stored.T
        first += [int(row.argmax()) in one.answers for row, one in zip(near, asked, strict=True)]
    return float(np.mean(first))


def test_questions_of_strangers_are_nearer_to_their_answers_than_the_packaged_model_has_them():
    assert shares_first(retrieval_encoder()) > shares_first(builtin_encoder()) + 0.04


def test_texts_unlike_those_it_was_tuned_with_keep_their_vectors():
    texts = ["def parse(line): return line.split(',')", "Interest rates rose by two percent.", "Ödön lakik Győrben."]
    tuned, packaged = (encoder.encode(texts, query=False) for encoder in (retrieval_encoder(), builtin_encoder()))
    assert (tuned * packaged).sum(axis=1).min() > 0.8


def embedder_of(**readers):
    return make_embedder(Config(readers=ReadersConfig(**readers)))


def test_each_way_to_have_it_has_a_fingerprint_of_its_own(tmp_path):
    file = files("memoryd.embedding") / "data" / "readers" / "retrieval.npz"
    with np.load(str(file)) as packaged:
        values = dict(packaged)
    values["layer0.q.b"] = values["layer0.q.b"] * 1.5
    np.savez(tmp_path / "retrieval.npz", **values)
    made = [embedder_of(), embedder_of(retrieval="none"), embedder_of(retrieval=str(tmp_path))]
    assert 3 == len({one.fingerprint for one in made})
    assert builtin_encoder().fingerprint == made[1].fingerprint
    in_float = make_embedder(Config(embedding=EmbeddingConfig(provider="builtin-float")))
    assert builtin_encoder(in_float=True).fingerprint == in_float.fingerprint
    for one in (*made, in_float):
        one.close()


def test_a_directory_without_it_is_refused_by_its_key(tmp_path):
    with pytest.raises(ModelRefused, match=r"readers.retrieval is '/no/such'; it must be builtin, none, or a dir"):
        embedder_of(retrieval="/no/such")
    with pytest.raises(ModelRefused, match="make train-readers READER=retrieval"):
        embedder_of(retrieval=str(tmp_path))
    np.savez(tmp_path / "retrieval.npz", sha256=np.array(MODEL_SHA256))
    with pytest.raises(ModelRefused, match="it holds no adapters"):
        embedder_of(retrieval=str(tmp_path))


def test_a_store_of_before_is_embedded_anew_and_found_meanwhile(folder):
    with running(folder, config='[readers]\nretrieval = "none"\n') as daemon, daemon.client() as host:
        host.add("Penicillin brings me out in hives")
    with running(folder) as daemon, daemon.client() as host:
        assert "Penicillin brings me out in hives" == host.search("penicillin").hits[0].memory.content
        until_embedded(host)
        assert host.search("what am I allergic to").hits[0].similarity > 0.2
    store = open_duckdb(folder)
    ((fingerprint, _),) = asyncio.run(vectors_of(store, OWNER)).values()
    asyncio.run(store.close())
    assert retrieval_encoder().fingerprint == fingerprint
