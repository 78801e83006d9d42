"""The one graph of all readers: what each adds to it is its own, and is what its file says."""

from __future__ import annotations

import io

import numpy as np
import pytest

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import MODEL_SHA256, data_file, integer_graph, packaged_model
from memoryd.embedding.readers.adapters import LAYERS, Adapters, reader_tokenizer, tuned_encoder, tuned_graph, values_of

TEXTS = ["I rent a flat in Leeds and it is cold.", "No.", "We handed back the keys on Friday, she was very kind."]
READERS = {"answer": 1, "change": 1, "keeping": 9}


def ids():
    return [one.ids for one in reader_tokenizer().encode_batch(TEXTS)]


def test_readers_share_one_graph_and_each_has_its_own_adapters():
    tuned = {name: tuned_encoder(name, None, outputs=outputs) for name, outputs in READERS.items()}
    assert tuned["change"].graph.trunk is tuned["keeping"].graph.trunk
    first, second = (tuned[name].graph.states(ids())[0] for name in ("change", "keeping"))
    assert not np.allclose(first, second, atol=0.1)
    assert np.array_equal(first, tuned["change"].graph.states(ids())[0])


@pytest.mark.parametrize("name", READERS)
def test_adapters_beside_the_weights_say_what_adapters_in_the_weights_say(name):
    beside = tuned_encoder(name, None, outputs=READERS[name]).graph.states(ids())
    within, _ = tuned_graph(name, None)
    for one, other in zip(beside, within.states(ids()), strict=True):
        cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        assert cosines.mean() > 0.97


def test_factors_of_zeros_leave_the_packaged_model_as_it_is(tmp_path):
    values, _ = values_of("change", None)
    none = {key: np.zeros_like(value) if key.startswith("layer") else value for key, value in values.items()}
    np.savez(tmp_path / "change.npz", **none)
    found = tuned_encoder("change", tmp_path, outputs=1).graph.states(ids())
    expected = integer_graph(packaged_model()).states(ids())
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(found, expected, strict=True))


def test_a_reader_may_adapt_some_layers_alone(tmp_path):
    values, _ = values_of("change", None)
    upper = {key: value for key, value in values.items() if key[:6] not in {"layer0", "layer1", "layer2"}}
    assert 4 * (LAYERS - 3) == len(Adapters(upper))
    np.savez(tmp_path / "change.npz", **upper)
    found = tuned_encoder("change", tmp_path, outputs=1).graph.states(ids())
    assert not np.allclose(found[0], integer_graph(packaged_model()).states(ids())[0], atol=0.1)


@pytest.mark.parametrize("part", ["layer3.q.a", "layer0.f.b", "layer5.r.b", "head.weight"])
def test_a_file_whose_parts_do_not_fit_the_model_is_refused_by_its_path(tmp_path, part):
    with np.load(io.BytesIO(data_file("readers/change.npz"))) as file:
        values = dict(file)
    assert MODEL_SHA256 == str(values["sha256"])
    np.savez(tmp_path / "change.npz", **{**values, part: values[part][:-1]})
    with pytest.raises(ModelRefused, match=f"{tmp_path}/change.npz cannot be read.*make train-readers READER=change"):
        tuned_encoder("change", tmp_path, outputs=1)
