"""What an index has missed comes as one change set, and brings it as far as each commit by itself."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from memoryd.index.cache import ScopeIndexes
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Embedding, Tombstone
from memoryd.model.commits import Head, merged
from memoryd.model.memory import Source
from memoryd.store.recent import RecentChanges
from tests.builders import NOW, HashEncoder, entry, memory
from tests.index_helpers import OWNER


@pytest.mark.parametrize("seed", range(20))
def test_what_was_missed_brings_an_index_as_far_as_each_commit_by_itself(seed):
    dice, feed, known = Random(seed), ScopeIndexes._bring, {}
    first, second = (ScopeIndex([], dimensions=32, fingerprint=HashEncoder.fingerprint) for _ in range(2))
    recent, seen = RecentChanges(Head()), 0
    for seq in range(1, 60):
        made = entry(f"number {seq} of {dice.randint(1, 5)}")
        parts = {"inserts": (made,)} if dice.random() < 0.4 or not known else {}
        if not parts:
            old = known[dice.choice([*known])]
            state = dice.choice([{"delete_time": NOW}, {"delete_time": None}, {"tags": (str(seq),)}])
            changed = replace(old, memory=replace(old.memory, **state))
            is_back = old.memory.delete_time is not None and changed.memory.delete_time is None
            parts = {"updates": (changed if is_back else replace(changed, vector=None),)}
            if dice.random() < 0.3:
                vector = entry(f"other words {seq}").vector
                parts = {"embeddings": (Embedding(OWNER, old.memory.id, vector, HashEncoder.fingerprint),)}
                changed = replace(old, vector=vector)
            made = changed
        stone = Tombstone(OWNER, bytes([dice.randint(1, 4)]))
        parts |= dice.choice([{"tombstones": (stone,)}, {"lift": (stone,)}])
        known[made.memory.id] = made
        applied = recent.add(seq, ChangeSet(**parts))
        [*feed(first, applied)]
        if dice.random() < 0.2:
            [*feed(second, recent.since(OWNER, seen))]
            seen = seq
            for memory_id in known:
                assert first.memory(memory_id) == second.memory(memory_id), (seq, memory_id)
                rows = [index.row_of(memory_id) for index in (first, second)]
                vectors = [
                    None if row is None else index.vectors.row(row)
                    for index, row in zip((first, second), rows, strict=True)
                ]
                assert repr(vectors[0]) == repr(vectors[1])
            assert (first.tombstones, first.commit_seq) == (second.tombstones, second.commit_seq)


def test_a_vector_of_a_message_that_is_gone_goes_to_no_other_in_its_place():
    def vector_of(message_id, text):
        return Embedding(OWNER, "t-1", entry(text).vector, "f", message_id=message_id)

    made = entry(memory("hello", id="t-1", source=Source(message_ids=("new",))))
    bare = replace(made, vector=None, fingerprint="")
    right, stale = vector_of("new", "hello"), vector_of("old", "another")
    together = merged([ChangeSet(inserts=(bare,)), ChangeSet(embeddings=(stale,))])
    assert [None] == [one.vector for one in together.inserts]
    together = merged([ChangeSet(embeddings=(right,)), ChangeSet(embeddings=(stale,))])
    assert (right, stale) == together.embeddings
