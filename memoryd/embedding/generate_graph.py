"""
Writes data/*.onnx and data/minilm.json: the packaged model as a graph that multiplies in integers.

The packaged file keeps int8 weights and multiplies in float. These graphs take the same weights and quantise the
activations too, each row (token) by its own largest value: q = round(x · 127 / max|x|) + 128. So a vector depends on
its text alone, whatever stands next to it in a batch. Layer norm, attention and GELU are one operator each. The graphs
hold no weights: minilm.json says where each stands in the packaged file, whose hash is checked. Those of the readers
take adapters as inputs: of each matrix two factors in float, whose product is added to what it makes.

Run by `make graph`; needs the package onnx, which the daemon does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from memoryd.embedding.packaged import MODEL_SHA256, PROBE_DEPTH, PROBE_WIDTH, packaged_model

LAYERS, HEADS, WIDTH, POSITIONS = 6, 12, 384, 512
EPSILON = 1e-12  # of layer norm, as the packaged graph has it
CONTRIB = "com.microsoft"  # operators that every build of onnxruntime has
DATA = Path(__file__).parent / "data"
Arrays = dict[str, NDArray[Any]]


class _Graph:
    """The nodes of a graph, each named after what it makes."""

    def __init__(self, source: onnx.ModelProto, data: bytes, weight_type: int, *, adapted: bool = False) -> None:
        self._weight_type = weight_type
        self.factors: list[tuple[str, tuple[int | str, int | str]]] | None = [] if adapted else None
        """Inputs besides the tokens, with their shapes: two factors a matrix, whose product is added to it."""
        self._source = {tensor.name: tensor for tensor in source.graph.initializer}
        self._data = data
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.places: dict[str, dict[str, Any]] = {}

    def op(self, kind: str, inputs: list[str], outputs: str | list[str], **attributes: Any) -> str:
        """Add a node and return its (first) output."""
        names = [outputs] if isinstance(outputs, str) else outputs
        domain = CONTRIB if kind in {"MatMulIntegerToFloat", "MultiHeadAttention", "BiasGelu"} else ""
        self.nodes.append(helper.make_node(kind, inputs, names, name=names[0], domain=domain, **attributes))
        return names[0]

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a small constant."""
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def packaged(self, name: str, *parts: str, shape: tuple[int, ...]) -> str:
        """Declare an array that the packaged file holds, in parts that are joined along the last axis."""
        tensors = [self._source[part] for part in parts]
        arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
        is_weight = arrays[0].dtype == np.int8 and name.endswith(".weight")
        self.places[name] = {
            "type": str(arrays[0].dtype),
            "parts": [
                [self._data.index(tensor.raw_data), list(array.shape)]
                for tensor, array in zip(tensors, arrays, strict=True)
            ],
            "shape": list(shape),
        }
        kind = self._weight_type if is_weight else tensors[0].data_type
        declared = onnx.TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        declared.external_data.add(key="location", value="packaged")
        self.constants.append(declared)
        return name


def _quantised(graph: _Graph, rows: str) -> tuple[str, str]:
    """Add what makes rows uint8; return their names and that of their scales, shape (tokens, 1)."""
    largest = graph.op("ReduceMax", [graph.op("Abs", [rows], f"{rows}.abs")], f"{rows}.max", axes=[-1], keepdims=1)
    scales = graph.op("Mul", [largest, "1/127"], f"{rows}.scales")
    flat = graph.op("Reshape", [scales, "[-1]"], f"{rows}.scale")
    return graph.op("QuantizeLinear", [rows, flat, "zeros"], f"{rows}.codes", axis=0), scales


def _product(graph: _Graph, rows: str, name: str, sources: list[str], shape: tuple[int, int]) -> str:
    """Add rows times a weight matrix, without its bias."""
    codes, scales = _quantised(graph, rows)
    weight = graph.packaged(f"{name}.weight", *(f"{source}_q" for source in sources), shape=shape)
    scale = graph.packaged(f"{name}.scale", *(f"{source}_scale" for source in sources), shape=shape[1:])
    inputs = [codes, weight, "1", scale, "128", "weight_zero"]
    product = graph.op("MatMulIntegerToFloat", inputs, f"{name}.product")
    whole = graph.op("Mul", [product, scales], f"{name}.scaled")
    if graph.factors is None:
        return whole
    graph.factors += [(f"{name}.a", (shape[0], f"{name}.rank")), (f"{name}.b", (f"{name}.rank", shape[1]))]
    narrow = graph.op("MatMul", [rows, f"{name}.a"], f"{name}.narrow")
    return graph.op("Add", [whole, graph.op("MatMul", [narrow, f"{name}.b"], f"{name}.low")], f"{name}.adapted")


def _norm(graph: _Graph, rows: str, name: str, source: str) -> str:
    weight = graph.packaged(f"{name}.gain", f"{source}.weight", shape=(WIDTH,))
    bias = graph.packaged(f"{name}.shift", f"{source}.bias", shape=(WIDTH,))
    return graph.op("LayerNormalization", [rows, weight, bias], name, axis=-1, epsilon=EPSILON)


def _residual(graph: _Graph, product: str, rows: str, name: str, source: str) -> str:
    """Add the end of a block: bias, the rows that went into it, layer norm."""
    bias = graph.packaged(f"{name}.bias", f"{source}.dense.bias", shape=(WIDTH,))
    summed = graph.op("Add", [graph.op("Add", [product, rows], f"{name}.with"), bias], f"{name}.sum")
    return _norm(graph, summed, f"{name}.norm", f"{source}.LayerNorm")


def _embedded(graph: _Graph) -> str:
    """Add the sum of word, position and type vectors; "shape" is (batch, tokens, width)."""
    prefix = "inner.embeddings"
    graph.op("Shape", ["input_ids"], "sizes")
    ids = graph.op("Reshape", ["input_ids", "[-1]"], "ids")
    graph.op("Expand", ["128", graph.op("Shape", [ids], "tokens")], "zeros")
    graph.op("Concat", ["sizes", graph.constant("[width]", np.array([WIDTH]))], "shape", axis=0)
    words = graph.packaged("words", f"{prefix}.word_embeddings.weight_q", shape=(30522, WIDTH))
    word_scales = graph.packaged("words.scale", f"{prefix}.word_embeddings.weight_scale", shape=(30522, 1))
    codes = graph.op("Cast", [graph.op("Gather", [words, ids], "word.codes")], "word.floats", to=TensorProto.FLOAT)
    word = graph.op("Mul", [codes, graph.op("Gather", [word_scales, ids], "word.scales")], "word")
    places = graph.packaged("places", f"{prefix}.position_embeddings.weight_q", shape=(POSITIONS, WIDTH))
    place_scales = graph.packaged("places.scale", f"{prefix}.position_embeddings.weight_scale", shape=(POSITIONS, 1))
    kinds = graph.packaged("kinds", f"{prefix}.token_type_embeddings.weight", shape=(2, WIDTH))
    floats = graph.op("Cast", [places], "places.floats", to=TensorProto.FLOAT)
    kind = graph.op("Slice", [kinds, "[0]", "[1]"], "kind")  # the first type: there is one sentence
    placed = graph.op("Add", [graph.op("Mul", [floats, place_scales], "places.scaled"), kind], "places.typed")
    length = graph.op("Slice", ["sizes", "[1]", "[2]"], "length")
    place = graph.op("Slice", [placed, "[0]", length], "place")
    summed = graph.op("Add", [graph.op("Reshape", [word, "shape"], "word.rows"), place], "embedded")
    return _norm(graph, graph.op("Reshape", [summed, "[-1,width]"], "embedded.rows"), "input", f"{prefix}.LayerNorm")


def _layer(graph: _Graph, rows: str, number: int, matrices: list[str]) -> str:
    query, key, value, out, wide, narrow = matrices
    name, source = f"layer{number}", f"inner.encoder.layer.{number}"
    qkv = _product(graph, rows, f"{name}.qkv", [query, key, value], (WIDTH, 3 * WIDTH))
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    graph.op("Split", [qkv], parts, axis=-1)
    biases = [f"{source}.attention.self.{part}.bias" for part in ("query", "key", "value")]
    bias = graph.packaged(f"{name}.qkv.bias", *biases, shape=(3 * WIDTH,))
    shaped = [graph.op("Reshape", [part, "shape"], f"{part}.shaped") for part in parts]
    attended = graph.op("MultiHeadAttention", [*shaped, bias], f"{name}.attended", num_heads=HEADS)
    flat = graph.op("Reshape", [attended, "[-1,width]"], f"{name}.attended.rows")
    product = _product(graph, flat, f"{name}.out", [out], (WIDTH, WIDTH))
    rows = _residual(graph, product, rows, f"{name}.attention", f"{source}.attention.output")
    product = _product(graph, rows, f"{name}.wide", [wide], (WIDTH, 4 * WIDTH))
    bias = graph.packaged(f"{name}.wide.bias", f"{source}.intermediate.dense.bias", shape=(4 * WIDTH,))
    activated = graph.op("BiasGelu", [product, bias], f"{name}.activated")
    product = _product(graph, activated, f"{name}.narrow", [narrow], (4 * WIDTH, WIDTH))
    return _residual(graph, product, rows, f"{name}.output", f"{source}.output")


def _model(graph: _Graph, inputs: list[Any], outputs: list[Any]) -> bytes:
    made = helper.make_graph(graph.nodes, "minilm", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    data: bytes = helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return data


def _encoder(
    source: onnx.ModelProto, data: bytes, weight_type: int, *, adapted: bool = False
) -> tuple[bytes, dict[str, Any]]:
    """Return the graph of the model with int8 or uint8 weights, and where its arrays stand; see `_Graph.factors`."""
    graph = _Graph(source, data, weight_type, adapted=adapted)
    weights = [node.input[1] for node in source.graph.node if node.op_type == "MatMul"]
    matrices = [name for name in weights if any(tensor.name == f"{name}_q" for tensor in source.graph.initializer)]
    unsigned = weight_type == TensorProto.UINT8
    graph.constant("weight_zero", np.array(128, np.uint8) if unsigned else np.array(0, np.int8))
    constants: Arrays = {
        "1/127": np.array(1 / 127, np.float32), "1": np.array(1, np.float32), "128": np.array(128, np.uint8),
        "[-1]": np.array([-1]), "[0]": np.array([0]), "[1]": np.array([1]), "[2]": np.array([2]),
        "[-1,width]": np.array([-1, WIDTH]),
    }  # fmt: skip
    for name, value in constants.items():
        graph.constant(name, value)
    rows = _embedded(graph)
    for number in range(LAYERS):
        rows = _layer(graph, rows, number, matrices[6 * number : 6 * number + 6])
    graph.op("Reshape", [rows, "shape"], "last_hidden_state")
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", WIDTH])
    factors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in graph.factors or ()]
    return _model(graph, [ids, *factors], [states]), graph.places


def _probe(weight_type: int) -> bytes:
    """Return a graph of one product whose sums leave 16 bits, as some processors' instructions do not."""
    graph = _Graph(onnx.ModelProto(), b"", weight_type)
    unsigned = weight_type == TensorProto.UINT8
    signed = np.full((PROBE_DEPTH, PROBE_WIDTH), 127, np.int16)
    signed[:, 1::2] = -127
    graph.constant("weight", (signed + 128).astype(np.uint8) if unsigned else signed.astype(np.int8))
    graph.constant("weight_zero", np.array(128, np.uint8) if unsigned else np.array(0, np.int8))
    graph.constant("scale", np.ones(PROBE_WIDTH, np.float32))
    graph.constant("1", np.array(1, np.float32))
    graph.constant("zero", np.array(0, np.uint8))
    graph.op("MatMulIntegerToFloat", ["codes", "weight", "1", "scale", "zero", "weight_zero"], "product")
    codes = helper.make_tensor_value_info("codes", TensorProto.UINT8, ["rows", PROBE_DEPTH])
    product = helper.make_tensor_value_info("product", TensorProto.FLOAT, ["rows", PROBE_WIDTH])
    return _model(graph, [codes], [product])


def _files() -> dict[str, bytes]:
    data = packaged_model()
    source = onnx.load_model_from_string(data)
    signed, places = _encoder(source, data, TensorProto.INT8)
    unsigned, _ = _encoder(source, data, TensorProto.UINT8)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(place)}" for name, place in places.items())
    table = f'{{"sha256": "{MODEL_SHA256}", "arrays": {{\n{lines}\n}}}}\n'
    readers = {
        f"readers-{name}.onnx": _encoder(source, data, kind, adapted=True)[0]
        for name, kind in (("s8", TensorProto.INT8), ("u8", TensorProto.UINT8))
    }
    return {"minilm-s8.onnx": signed, "minilm-u8.onnx": unsigned, "minilm.json": table.encode(), **readers,
            "probe-s8.onnx": _probe(TensorProto.INT8), "probe-u8.onnx": _probe(TensorProto.UINT8)}  # fmt: skip


def main() -> int:
    """Write the files, or say which are stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    check = parser.parse_args().check
    stale = False
    for name, data in _files().items():
        path = DATA / name
        if path.is_file() and path.read_bytes() == data:
            continue
        stale = True
        if check:
            print(f"{path} is stale: run make graph", file=sys.stderr)
        else:
            path.write_bytes(data)
            print(f"wrote {path}, {len(data)} bytes")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
