"""Metadata of any JSON value, and conditions on it inside searches and lists: one definition, three ways to ask it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.index.columns import Columns
from memoryd.index.scope import ScopeIndex
from memoryd.model import filter_terms
from memoryd.model.change import ChangeSet
from memoryd.model.memory import Draft
from memoryd.model.query import Filter
from memoryd.model.where import All, Compare, Exists, Not, OneOf, parse_where
from tests.builders import ALICE, NOW, Local, entry, memory, open_duckdb, ports_over, ram_store, visible_to

VALUES = [
    "text", "Text", "", "3", "true", "null", "ä", "z", "𝒳", 'a "quote"', "it's", "a\\b", 0, 1, 3, 3.5, -2, 1e12, True,
    False, None, [], [1, "a"], {}, {"a": 1},
]  # fmt: skip
KEYS = ["score", "source", "my key", "a.b", "ä", "a/b~c", "n:3:x=y", "draft"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("score >= 3", Compare("score", ">=", 3.0)),
        ("score==3", Compare("score", "=", 3.0)),
        ("source != 'web'", Not(Compare("source", "=", "web"))),
        ('source <> "web"', Not(Compare("source", "=", "web"))),
        ("draft exists", Exists("draft")),
        ("NOT draft EXISTS", Not(Exists("draft"))),
        (
            "a = 1 AND b = true OR c = null",
            OneOf((All((Compare("a", "=", 1.0), Compare("b", "=", True))), Compare("c", "=", None))),
        ),
        (
            "a = 1 and (b = 2 or c = 3)",
            All((Compare("a", "=", 1.0), OneOf((Compare("b", "=", 2.0), Compare("c", "=", 3.0))))),
        ),
        ("source in (\"web\", 'mail')", OneOf((Compare("source", "=", "web"), Compare("source", "=", "mail")))),
        ("source not in (1)", Not(Compare("source", "=", 1.0))),
        ("`my key` < -2.5e3", Compare("my key", "<", -2500.0)),
        ('a = "a \\"quote\\" \\u00e4"', Compare("a", "=", 'a "quote" ä')),
        ("a = 'it\\'s \"so\"'", Compare("a", "=", 'it\'s "so"')),
        ("a.b = 1", Compare("a.b", "=", 1.0)),
        ("ä > 'b'", Compare("ä", ">", "b")),
        ("not not a exists", Not(Not(Exists("a")))),
    ],
)  # fmt: skip
def test_what_is_said_is_read(text, made):
    assert made == parse_where(text)


@pytest.mark.parametrize(
    "text",
    [
        "score", "score >", "> 3", "score 3", "score = web", "score = 3 and", "(score = 3", "score = 3)", "score in 3",
        "score in ()", "score in (3", "not", "and = 3", "score = 'web", "score > true", "score < null", "a = [1]",
        "a = {}", "a = 1; drop table", "a =! 3", "score = 03", "score = 3x", "`` = 1", 'a = "\\x"', "a not 3",
    ],
)  # fmt: skip
def test_what_is_none_is_refused_and_said_where(text):
    with pytest.raises(InvalidArgument, match="filter.where") as refused:
        Filter(where=text)
    assert "filter.where" == refused.value.field


def test_what_is_too_much_is_refused():
    for text in (
        "(" * 20 + "a = 1" + ")" * 20,
        " or ".join(["a = 1"] * 65),
        "a = '" + "x" * 5000 + "'",
        "not " * 20 + "a = 1",
    ):
        with pytest.raises(LimitExceeded):
            Filter(where=text)
    assert Filter(where=" or ".join(["a = 1"] * 64))
    assert Filter(where="a in (" + ",".join(map(str, range(64))) + ")")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a = 3", [3, 3.0]), ("a = '3'", ["3"]), ("a = true", [True]), ("a = 1", [1]), ("a = null", [None]),
        ("a < 4", [3, 3.0, 1]), ("a >= '3'", ["3", "x"]), ("a exists", [3, 3.0, "3", True, 1, None, "x", [1]]),
        ("a != 3", ["3", True, 1, None, "x", [1], ...]), ("not a exists", [...]), ("a in (1, 'x')", [1, "x"]),
    ],
)  # fmt: skip
def test_values_are_compared_with_their_like_alone(text, held):
    known = [3, 3.0, "3", True, 1, None, "x", [1], ...]
    found = [value for value in known if parse_where(text).holds({} if value is ... else {"a": value})]
    assert [repr(value) for value in held] == [repr(value) for value in found]


def condition(rng, depth: int = 0) -> str:
    key = f"`{rng.choice(KEYS)}`"
    roll = rng.random()
    if depth < 3 and roll < 0.25:
        parts = [condition(rng, depth + 1) for _ in range(rng.randrange(2, 4))]
        return f"({rng.choice([' and ', ' or ']).join(parts)})"
    if depth < 3 and roll < 0.35:
        return f"not {condition(rng, depth + 1)}"
    if roll < 0.45:
        return f"{key} exists"
    value = rng.choice([value for value in VALUES if not isinstance(value, list | dict)])
    op = rng.choice(
        ["=", "!=", *(["<", "<=", ">", ">="] if isinstance(value, str | float) or type(value) is int else [])]
    )
    return f"{key} {op} {literal(value)}"


def literal(value) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return (
        {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else repr(value)
    )


@pytest.mark.parametrize("seed", range(6))
async def test_the_index_and_the_tables_agree_with_the_definition(folder, seed):
    rng = random.Random(seed)
    made = [
        entry(
            memory(f"statement {n}", metadata={key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randrange(5))})
        )
        for n in range(60)
    ]
    store = open_duckdb(folder)
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    async with ports_over(store) as ports:
        index = await ports.indexes.get(made[0].memory.owner)
        assert isinstance(index, ScopeIndex)
        for _ in range(60):
            wanted = Filter(where=condition(rng))
            expected = {one.memory.id for one in made if wanted.admits(one.memory, NOW)}
            mask = index.mask(wanted, NOW)
            assert expected == {index.memory_at(int(row)).id for row in mask.nonzero()[0]}, wanted.where
            page = await store.memories.page(visible_to(ALICE), wanted, now=NOW, limit=1000)
            assert expected == {one.id for one in page}, wanted.where


def test_what_was_erased_leaves_no_key_and_no_value_in_the_index():
    columns = Columns()
    made = [memory(metadata={"score": n, "draft": True}) for n in range(3)]
    for n, one in enumerate(made):
        columns.append(columns.register(n, one))
    columns.unlist(np.array([0, 2]), {term for n in (0, 2) for term in filter_terms.filter_terms_of(made[n])})
    assert {
        "score": [filter_terms.metadata_term("score", 1)],
        "draft": [filter_terms.metadata_term("draft", True)],
    } == {key: list(terms) for key, terms in columns._of_key.items()}
    columns.unlist(np.array([1]), filter_terms.filter_terms_of(made[1]))
    assert ({}, {}) == (columns._of_key, columns.filter_terms)


@pytest.mark.parametrize("value", VALUES)
async def test_a_value_comes_back_as_it_was_and_is_found_by_itself(folder, clock, value):
    for store in (ram_store(), open_duckdb(folder)):
        async with ports_over(store) as ports:
            local = Local(ports, clock, user_id="alice")
            added = (await local.add("I keep bees", metadata={"a/b": value, "other": "text"})).memory
            await local.add("I play the violin", metadata={"a/b": "another"})
            found = (await local.get(added.id)).metadata["a/b"]
            assert (value, int if value == 1e12 else type(value)) == (found, type(found))  # 3.0 is 3
            page = await local.page(filter=Filter(metadata={"a/b": value}))
            assert ["I keep bees"] == [one.content for one in page.memories]
            hits = (await local.search("what do I do?", filter=Filter(where="other = 'text'"), min_score=0.0)).hits
            assert ["I keep bees"] == [hit.memory.content for hit in hits]


def test_equal_values_have_one_term_and_other_types_have_others():
    same = [filter_terms.metadata_term("a", value) for value in (3, 3.0)]
    assert 1 == len(set(same))
    terms = {filter_terms.metadata_term("a", value) for value in ("3", 3, True, "true", None, "null", [], "[]")}
    assert 8 == len(terms)
    assert [("a", True)] * 8 == [(filter_terms.key_of(term), term.startswith("metadata")) for term in terms]
    assert "" == filter_terms.key_of("tag:metadata:1:a=b")


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**60, "x" * 1025, ["x" * 1025], "\0", ["\0"], ["\ud800"], object(), {1, 2}, [[b"x"]]],
)
def test_what_is_no_value_is_refused(value):
    with pytest.raises((InvalidArgument, LimitExceeded)) as refused:
        Draft(content="I keep bees", metadata={"a": value})
    assert "metadata" == refused.value.field


def test_texts_within_values_are_in_nfc():
    assert {"a": ["\u00e9"]} == dict(Draft(content="I keep bees", metadata={"a": ["e\u0301"]}).metadata)
