"""
The others, each through its public API, in a process and an environment of its own; told what to do on standard input.

Each line is a JSON list: ["fill", user, texts], ["add", user, text] or ["search", user, query]; each answer is a line
with the milliseconds that it took. Vectors of a fill are random; all others are made by memoryd's encoder, within the
time that is measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

TOP = 10
FILL = 2000
os.environ |= {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "OPENAI_API_KEY": "none"}


class Encoder:
    """memoryd's model."""

    def __init__(self) -> None:
        from memoryd.embedding.packaged import builtin_encoder

        self._encoder = builtin_encoder()

    def __call__(self, text: str) -> list[float]:
        return self._encoder.encode([text], query=True)[0].tolist()


class Chroma:
    """A persistent client, one collection, users as metadata."""

    def __init__(self, folder: Path, encode: Encoder) -> None:
        import chromadb

        client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
        self._collection = client.create_collection("memories", metadata={"hnsw:space": "cosine"})
        self._encode = encode

    def fill(self, user: str, texts: list[str], vectors: np.ndarray) -> None:
        ids, whose = [uuid.uuid4().hex for _ in texts], [{"user": user}] * len(texts)
        self._collection.add(ids=ids, documents=texts, embeddings=vectors, metadatas=whose)

    def add(self, user: str, text: str) -> None:
        self._collection.add(
            ids=[uuid.uuid4().hex], documents=[text], embeddings=[self._encode(text)], metadatas=[{"user": user}]
        )

    def search(self, user: str, query: str) -> int:
        found = self._collection.query(query_embeddings=[self._encode(query)], n_results=TOP, where={"user": user})
        return len(found["documents"][0])


class Lance:
    """One table, users as a column, exact search with the filter before it."""

    def __init__(self, folder: Path, encode: Encoder) -> None:
        import lancedb
        import pyarrow as pa

        schema = pa.schema(
            [("id", pa.string()), ("user", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 384))]
        )
        self._table = lancedb.connect(str(folder)).create_table("memories", schema=schema)
        self._encode = encode

    def fill(self, user: str, texts: list[str], vectors: np.ndarray) -> None:
        self._table.add(
            [
                {"id": uuid.uuid4().hex, "user": user, "text": text, "vector": vector}
                for text, vector in zip(texts, vectors, strict=True)
            ]
        )

    def add(self, user: str, text: str) -> None:
        self._table.add([{"id": uuid.uuid4().hex, "user": user, "text": text, "vector": self._encode(text)}])

    def search(self, user: str, query: str) -> int:
        asked = self._table.search(self._encode(query)).metric("cosine").where(f"user = '{user}'", prefilter=True)
        return len(asked.limit(TOP).to_list())


class Mem0:
    """Without its LLM (infer=False), over its own default store."""

    def __init__(self, folder: Path, encode: Encoder) -> None:
        from langchain_core.embeddings import Embeddings
        from mem0 import Memory

        class Model(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [encode(text) for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return encode(text)

        store = {"path": str(folder / "q"), "collection_name": "memories", "embedding_model_dims": 384, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": Model(), "embedding_dims": 384}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def fill(self, user: str, texts: list[str], vectors: np.ndarray) -> None:
        payloads: list[dict[str, Any]] = [{"data": text, "user_id": user, "hash": ""} for text in texts]
        self._memory.vector_store.insert(
            vectors=vectors.tolist(), payloads=payloads, ids=[str(uuid.uuid4()) for _ in texts]
        )

    def add(self, user: str, text: str) -> None:
        self._memory.add(text, user_id=user, infer=False)

    def search(self, user: str, query: str) -> int:
        return len(self._memory.search(query, filters={"user_id": user}, top_k=TOP)["results"])


SYSTEMS = {"chromadb": Chroma, "lancedb": Lance, "mem0": Mem0}


def main() -> None:
    """Serve one system in a folder: its name and the folder are the arguments."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is no answer
    folder = Path(sys.argv[2])
    os.environ["HOME"] = str(folder)
    system = SYSTEMS[sys.argv[1]](folder, Encoder())
    rng = np.random.default_rng(1)
    for line in sys.stdin:
        what, user, given = json.loads(line)
        began = time.perf_counter()
        if what == "fill":
            for n in range(0, len(given), FILL):
                texts = given[n : n + FILL]
                vectors = rng.standard_normal((len(texts), 384)).astype(np.float32)
                system.fill(user, texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        elif what == "add":
            system.add(user, given)
        elif system.search(user, given) != TOP:
            raise SystemExit(f"{sys.argv[1]} found fewer than {TOP}")
        print(json.dumps((time.perf_counter() - began) * 1e3), file=answers, flush=True)
    answers.close()
    os._exit(0)  # some of them stumble over their own ends


if __name__ == "__main__":
    main()
