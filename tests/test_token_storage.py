"""The vectors of tokens are kept with their text, over restarts and models, and go with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memoryd.domain.conversation.embed import MessageEmbedder
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.tokens import codes_of, projection
from memoryd.index.scope import ScopeIndex
from memoryd.model.batch import VectorsWanted
from memoryd.model.change import ChangeSet, Embedding
from memoryd.model.embedding import TOKEN_DIMENSIONS, TOKEN_SCALE, Embedded
from memoryd.model.message_draft import MessageDraft
from memoryd.model.scope import Owner
from tests.builders import ALICE, HashEncoder, Local, entry, open_duckdb, ports_over, ram_store, stored

OWNER = Owner("default", ALICE)


class TokenEncoder(HashEncoder):
    """One token a word: equal words have equal vectors."""

    def read(self, texts, *, query):
        vectors = self.encode(texts, query=query)
        return [Embedded(vector, _tokens(text), _places(text)) for vector, text in zip(vectors, texts, strict=True)]


def _tokens(text: str) -> bytes:
    seeds = [int.from_bytes(word.encode()[:7]) for word in text.split()]
    return b"".join(
        np.random.default_rng(s).integers(-20, 21, TOKEN_DIMENSIONS).astype(np.int8).tobytes() for s in seeds
    )


def _places(text: str) -> tuple[tuple[int, int], ...]:
    starts = [n for n, letter in enumerate(text) if letter != " " and (n == 0 or text[n - 1] == " ")]
    return tuple((start, start + len(text[start:].split(maxsplit=1)[0])) for start in starts)


def loaded(store, **more):
    def build(snapshot):
        wanted = VectorsWanted(32, HashEncoder.fingerprint, tokens=more.get("with_tokens", True))
        return ScopeIndex(snapshot.read(wanted), dimensions=32, fingerprint=HashEncoder.fingerprint, **more)

    return store.commits.memories.snapshot(OWNER, build)


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_tokens_come_back_with_their_memory_and_change_with_its_vector(kind, folder):
    store = ram_store() if kind == "ram" else open_duckdb(folder)
    made = replace(entry("tea"), tokens=b"\x00\x7f\x80\xff" * 32)
    bare = entry("rum")
    await store.commits.write(ChangeSet(inserts=(made, bare)))
    assert made.tokens == (await stored(store, made.memory)).tokens
    assert b"" == (await stored(store, bare.memory)).tokens
    assert [made.tokens, b""] == [loaded(store).tokens.row(n) for n in range(2)]
    assert [b"", b""] == [loaded(store, with_tokens=False).tokens.row(n) for n in range(2)]
    new = Embedding(OWNER, made.memory.id, made.vector, made.fingerprint, b"\x01" * 128)
    await store.commits.write(ChangeSet(embeddings=(new,)))
    assert new.tokens == (await stored(store, made.memory)).tokens
    await store.commits.write(ChangeSet(embeddings=(replace(new, tokens=b""),)))
    assert b"" == (await stored(store, made.memory)).tokens
    await store.close()


async def test_tokens_of_memories_and_messages_are_there_after_a_restart(folder, clock):
    for _ in range(2):
        async with ports_over(open_duckdb(folder), encoder=TokenEncoder()) as ports:
            alice = Local(ports, clock, user_id="alice")
            if not (await alice.page()).memories:
                await alice.add("green tea with honey")
                await alice.append("t", MessageDraft(content="black coffee with milk", name="Bob"))
                assert await MessageEmbedder(ports, clock, print).step()
            for index, text in (
                (await ports.indexes.get(OWNER), "green tea with honey"),
                (await ports.episodes.get(OWNER), "Bob: black coffee with milk"),
            ):
                assert _tokens(text) == index.tokens.row(0)
            legs = {leg.leg.value: leg for leg in (await alice.search("honey", explain=True)).hits[0].explanation}
            assert 1 == legs["tokens"].rank


async def test_a_scope_whose_tokens_take_too_much_goes_without_and_says_so(folder, clock):
    async with ports_over(open_duckdb(folder), encoder=TokenEncoder()) as ports:
        alice = Local(ports, clock, user_id="alice")
        for n in range(20):
            await alice.add(f"number {n} " + "word " * 100)
        ports.indexes._drop(OWNER)
        ports.indexes._budget = 200_000
        found = await alice.search("number 7", min_score=0.0)
        assert ["tokens"] == [leg.value for leg in found.unavailable_legs]
        assert found.hits[0].memory.content.startswith("number 7 ")


def test_the_projection_keeps_products_and_is_the_same_everywhere():
    matrix = projection(384)
    assert np.allclose(matrix.T @ matrix, np.eye(TOKEN_DIMENSIONS), atol=1e-6)
    assert [0.0749, 0.0214, 0.0145] == [round(float(value), 4) for value in matrix[0, :3]]
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 384)).astype(np.float32)
    codes = (
        np.frombuffer(codes_of(rows, matrix), np.int8).reshape(200, TOKEN_DIMENSIONS).astype(np.float32) * TOKEN_SCALE
    )
    lengths = np.linalg.norm(rows, axis=1)
    exact = (rows / lengths[:, None]) @ (rows / lengths[:, None]).T
    assert np.abs(codes @ codes.T * 3 - exact).max() < 0.45
    assert np.corrcoef((codes @ codes.T).ravel(), exact.ravel())[0, 1] > 0.7


def test_a_text_has_the_same_tokens_alone_and_in_a_batch():
    encoder = builtin_encoder()
    texts = ["tea", "I like green tea very much", "Where did you go?", "tea"]
    together = encoder.read(texts, query=False)
    assert [one.tokens for one in together] == [encoder.read([text], query=False)[0].tokens for text in texts]
    assert all(
        np.array_equal(one.vector, encoder.encode([text], query=False)[0])
        for one, text in zip(together, texts, strict=True)
    )
    assert TOKEN_DIMENSIONS == len(together[0].tokens)
