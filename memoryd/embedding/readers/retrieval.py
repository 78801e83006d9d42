"""
The retrieval reader: the packaged encoder itself, tuned so that a question is near what answers it.

It makes all vectors, and costs nothing while it runs; its fingerprint is another, so vectors are made anew once.
"""

from __future__ import annotations

from pathlib import Path

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.onnx import OnnxEncoder
from memoryd.embedding.packaged import MODEL_SHA256, builtin_encoder, packaged_encoder
from memoryd.embedding.readers.adapters import tuned_graph

__all__ = ["NAME", "retrieval_encoder"]

NAME = "retrieval"


def retrieval_encoder(directory: Path | None = None, *, dimensions: int = 0) -> OnnxEncoder:
    """
    Return the packaged encoder as the file of a directory tunes it, or the packaged file; ModelRefused if it is none.

    A processor that does not multiply integers exactly has the packaged model as it was, if no directory is named.
    """
    graph, file_hash = tuned_graph(NAME, directory)
    if graph is not None:
        return packaged_encoder("builtin", graph, f"{MODEL_SHA256} {file_hash}", dimensions)
    if directory is None:
        return builtin_encoder(dimensions=dimensions)
    raise ModelRefused(f"this processor does not multiply integers exactly; set readers.{NAME} to none")
