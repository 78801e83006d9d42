"""LangGraph's store over a real daemon, held against its own InMemoryStore: the same operations, the same answers."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from memory_client import AsyncMemoryClient, InvalidArgument, LimitExceeded
from memory_client.adapters.langgraph import MemorydStore

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6


@pytest.fixture
def store(daemon, user):
    with daemon.client(user) as client:
        yield MemorydStore(client)


def keys(items) -> list[str]:
    return [item.key for item in items]


def told(do):
    """What an operation answers, or which error it ends with."""
    try:
        return do()
    except (ValueError, TypeError) as error:
        return type(error).__name__


SCENES = {
    "an item put twice": lambda s: (
        s.put(("users", "u1", "prefs"), "theme", {"theme": "dark"}),
        s.put(("users", "u1", "prefs"), "theme", {"theme": "light"}),
        s.get(("users", "u1", "prefs"), "theme").value,
    )[-1],
    "what contradicts": lambda s: (
        s.put(("a",), "1", {"text": "My favorite color is red"}),
        s.put(("a",), "2", {"text": "My favorite color is blue"}),
        keys(s.search(("a",))),
    )[-1],
    "the same text": lambda s: (
        s.put(("b",), "1", {"text": "same text"}), s.put(("b",), "2", {"text": "same text"}),
        s.put(("b2",), "1", {"text": "same text"}), keys(s.search(("b",))), keys(s.search(("b2",))),
    )[-2:],
    "sizes": lambda s: [
        (s.put(("e",), f"b{n}", {"text": "word " * (n // 5)}), s.get(("e",), f"b{n}").value)[1]
        for n in (900, 2000, 7000, 20000, 100_000)
    ],
    "values of all sorts": lambda s: [
        (s.put(("f",), "n", value), s.get(("f",), "n").value)[1]
        for value in (
            {"n": 1, "f": 1.5, "b": True, "x": None, "l": [1, {"a": 2}]}, {}, {"v": "e\u0301"}, {"v": "a\x00b"},
            {"v": "😀 \u202e \u2066"}, {"big": 2**80, "small": 1e-300, "neg": -0.0}, {"": {"": []}},
            {"v": "\ud800"}, {"k\u0301": "é"}, {"v": "</script><script>alert(1)</script>"},
        )
    ],
    "keys of all sorts": lambda s: [
        (s.put(("g", "x"), key, {"is": key}), s.get(("g", "x"), key).value == {"is": key}, s.get(("g", "x"), key).key)
        for key in ("k", "K", "k" * 200, "a/b", "..", ".", "%2F", "~x", " ", "ü", "日本", "\x00", "\u202e", "a b", "*",
                    "x" * 64, "x" * 65, "k" * 600, "\ud800")
    ],
    "namespaces of all sorts": lambda s: [
        (s.put(namespace, "k", {"at": at}), s.get(namespace, "k").value == {"at": at}, s.get(namespace, "k").namespace)
        for at, namespace in enumerate(
            [("ü", "日本"), ("a/b",), ("a", "b"), ("*",), ("x" * 300, "y"), ("n",) * 9, ("~",), ("%",), (" ",)]
        )
    ],
    "listed namespaces": lambda s: [
        s.list_namespaces(**asked)
        for asked in (
            {}, {"prefix": ("users",)}, {"prefix": ("users",), "max_depth": 2}, {"suffix": ("prefs",)},
            {"max_depth": 1}, {"prefix": ("*", "u1")}, {"suffix": ("u1", "*")},
            {"prefix": ("users", "*"), "suffix": ("prefs",)}, {"limit": 2}, {"limit": 2, "offset": 1},
            {"prefix": ("none",)}, {"prefix": ("x" * 300,)},
        )
    ],
    "filters": lambda s: (
        [s.put(("h",), str(n), {"score": n, "color": color, "nest": {"n": n}, "list": [n, n]})
         for n, color in enumerate(["red", "blue", "red", "green"])],
        [
            told(lambda wanted=wanted: keys(s.search(("h",), filter=wanted)))
            for wanted in (
                {"score": {"$gt": 1}}, {"score": {"$gte": 1, "$lt": 3}}, {"color": {"$ne": "red"}}, {"color": "red"},
                {"color": {"$eq": "red"}}, {"nest": {"n": 2}}, {"list": [1, 1]}, {"none": None}, {"score": {"$lte": 0}},
                {"score": {"$in": [1]}}, {"nest": {"n": {"$gt": 1}}}, {},
            )
        ],
        keys(s.search(("h",), filter={"color": "red"}, limit=1, offset=1)),
    )[1:],
    "pages": lambda s: (
        [s.put(("p", str(n % 2)), str(n), {"n": n}) for n in range(7)],
        [sorted(keys(s.search(("p",), limit=9, offset=offset))) for offset in (0,)],
        keys(s.search(("p", "1"), limit=2)), keys(s.search(("p", "1"), limit=2, offset=1)),
        keys(s.search(("p", "1"), limit=2, offset=9)), keys(s.search(("none",))), keys(s.search((), limit=0)),
    )[1:],
    "deleted": lambda s: (
        s.put(("d",), "x", {"n": 1}), s.delete(("d",), "x"), s.get(("d",), "x"), s.delete(("d",), "never"),
        s.put(("d",), "x", {"n": 2}), s.get(("d",), "x").value,
    ),
    "a batch": lambda s: [
        [getattr(item, "value", item) for item in results]
        for results in (
            s.batch([PutOp(("q",), "k", {"n": 1}), GetOp(("q",), "k"), PutOp(("q",), "k", {"n": 2})]),
            s.batch([GetOp(("q",), "k"), PutOp(("q",), "k", None), GetOp(("q",), "k")]),
            s.batch([GetOp(("q",), "k")]),
            s.batch([]),
        )
    ],
    "what makes no sense": lambda s: [
        told(do)
        for do in (
            lambda: s.put((), "k", {}), lambda: s.put(("a.b",), "k", {}), lambda: s.put(("",), "k", {}),
            lambda: s.put(("langgraph",), "k", {}), lambda: s.get(("",), "k"), lambda: s.search(("a.b",)),
        )
    ],
    "asynchronous": lambda s: s.get(("users", "u1", "prefs"), "theme").value,
}  # fmt: skip


def test_every_scene_is_answered_as_by_the_library_itself(store):
    own = InMemoryStore()
    for name, scene in SCENES.items():
        assert scene(store) == scene(own), name


def test_a_search_of_one_namespace_is_not_crowded_out_by_others(store):
    for n in range(120):
        store.put(("a",), str(n), {"text": f"green tea number {n}"})
    store.put(("b", "c"), "only", {"text": "green tea"})
    store.put(("bb",), "near", {"text": "green tea"})
    for namespace in (("b",), ("b", "c")):
        assert keys(store.search(namespace, query="green tea")) == ["only"]
        assert keys(store.search(namespace, query="green tea", filter={"text": "green tea"})) == ["only"]
    assert len(store.search(("a",), query="green tea", limit=30, offset=60)) == 30


def test_items_come_in_the_order_in_which_they_were_put(store):
    for key in ("z", "m", "a"):
        store.put(("o",), key, {"n": 1})
    store.put(("o",), "z", {"n": 2})
    assert keys(store.search(("o",))) == ["z", "m", "a"]


def test_notes_of_other_programs_below_its_root_are_no_items(daemon, user):
    with daemon.client(user) as client:
        store = MemorydStore(client)
        store.put(("f",), "own", {"n": 1})
        stolen = client.note("langgraph/f/own").value
        for name, content in {"text": "just text", "json": {"x": 1}, "list": [1], "of-another-path": stolen}.items():
            client.put_note(f"langgraph/f/{name}", content)
            assert store.get(("f",), name) is None
        assert keys(store.search(("f",))) == keys(store.search(("f",), filter={"n": 1})) == ["own"]


def test_an_item_keeps_when_it_was_first_put(store):
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert (first.created_at, first.updated_at) == (second.created_at, first.created_at)
    assert second.updated_at > second.created_at


async def test_the_asynchronous_store_says_the_same_and_waits_for_no_thread(daemon, user):
    client = AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="")
    store = MemorydStore(async_client=client)
    await asyncio.gather(*(store.aput(("n",), str(n), {"n": n}) for n in range(20)))
    assert (await store.aget(("n",), "7")).value == {"n": 7}
    assert sorted(int(item.key) for item in await store.asearch(("n",), limit=50)) == list(range(20))
    await store.adelete(("n",), "7")
    assert await store.aget(("n",), "7") is None
    assert await store.alist_namespaces() == [("n",)]
    await client.close()


def test_a_credential_is_refused_and_never_kept_quietly(store):
    for value in ({"api_key": KEY}, {"deep": [{"x": f"my key is {KEY}"}]}):
        with pytest.raises(InvalidArgument, match="credential"):
            store.put(("s",), "1", value)
    assert store.get(("s",), "1") is None
    with pytest.raises(LimitExceeded):
        store.put(("s",), "1", {"text": "x" * 300_000})
    with pytest.raises(TypeError):
        store.put(("s",), "1", {"text": object()})


def test_a_search_finds_by_the_fields_that_are_named(store):
    store.put(("m",), "1", {"text": "I keep bees on the roof", "private": "zebra"}, index=["text"])
    store.put(("m",), "2", {"text": "The car is in the garage"})
    store.put(("m",), "3", {"text": "bees bees bees"}, index=False)
    store.put(("other",), "4", {"text": "bees in another place"})
    found = store.search(("m",), query="Where are the bees?")
    assert found[0].key == "1"
    assert 0 < found[0].score <= 1
    assert "3" not in keys(found)
    assert {item.namespace for item in found} == {("m",)}
    assert keys(store.search(("m",), query="bees", filter={"text": {"$ne": "x"}}, limit=1)) == ["1"]
    with pytest.raises(ValueError, match="100 together"):
        store.search(("m",), query="bees", limit=90, offset=20)


def test_an_item_expires_after_the_last_access(daemon, user):
    with daemon.client(user) as client:
        store = MemorydStore(client, ttl={"default_ttl": 90})
        store.put(("t",), "default", {"n": 1})
        store.put(("t",), "own", {"n": 1}, ttl=5)
        store.put(("t",), "never", {"n": 1}, ttl=None)
        notes = {note.path.rpartition("/")[2]: note for note in client.all_notes("langgraph/t/")}
        assert {name: note.expire_after_access_s for name, note in notes.items()} == {
            "default": 5400, "own": 300, "never": 0,
        }  # fmt: skip
        fixed = MemorydStore(client, root="fixed", ttl={"default_ttl": 2, "refresh_on_read": False})
        fixed.put(("t",), "k", {"n": 1})
        note = client.note("fixed/t/k")
        assert (note.expire_after_access_s, note.expire_time is not None) == (0, True)


def test_whose_the_items_are_a_namespace_says_only_where_the_host_asks_for_it(daemon, user):
    with daemon.client("nobody") as client:
        store = MemorydStore(client, user_from=1)
        for name in ("ann", "bob"):
            store.put(("users", f"{user}{name}", "prefs"), "k", {"of": name})
        assert store.get(("users", f"{user}ann", "prefs"), "k").value == {"of": "ann"}
        assert store.list_namespaces(prefix=("users", f"{user}bob")) == [("users", f"{user}bob", "prefs")]
        assert [item.value["of"] for item in store.search(("users", f"{user}ann"))] == ["ann"]
        for ask in (lambda: store.search(("users",)), store.list_namespaces, lambda: store.get(("x",), "k")):
            with pytest.raises(ValueError, match="names the user"):
                ask()
        assert list(client.all_notes()) == []
    with daemon.client(f"{user}ann") as client:
        assert [note.path for note in client.all_notes()] == [f"langgraph/users/{user}ann/prefs/k"]


def test_a_direct_batch_is_checked_as_any_other(store):
    for op in (GetOp(("a.b",), "k"), PutOp(("",), "k", {}), ListNamespacesOp((MatchCondition("prefix", ("a.b",)),))):
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])


LABELS = ("a", "b", "c/d", "é", "*", "%", "x" * 80)


def an_operation(dice: random.Random):
    namespace = tuple(dice.choices(LABELS, k=dice.randint(1, 3)))
    kind = dice.randrange(5)
    if kind == 0:
        return GetOp(namespace, dice.choice(LABELS))
    if kind == 1:
        return SearchOp(namespace[: dice.randint(0, 2)], limit=100)
    if kind == 2:
        depth = dice.choice([None, 1, 2])
        condition = MatchCondition(dice.choice(["prefix", "suffix"]), namespace[:2])
        return ListNamespacesOp(dice.choice([None, (condition,)]), depth, limit=100)
    value = {dice.choice("ké"): dice.choice([1, "text", None, [True], {"n": "e\u0301"}])}
    return PutOp(namespace, dice.choice(LABELS), None if dice.random() < 0.2 else value)


def plain(result):
    """A result without its times; of several namespaces the library promises no order."""
    if isinstance(result, list):
        return sorted((plain(one) for one in result), key=repr)
    return (result.namespace, result.key, json.dumps(result.value)) if isinstance(result, Item) else result


@pytest.mark.parametrize("seed", range(10))
def test_any_operations_answer_as_in_memory(daemon, user, seed):
    dice, own = random.Random(seed), InMemoryStore()
    with daemon.client(user) as client:
        store = MemorydStore(client)
        for _ in range(6):
            batch = [an_operation(dice) for _ in range(10)]
            lists = [op for op in batch if isinstance(op, ListNamespacesOp)]
            batch = [op for op in batch if op not in lists]
            assert list(map(plain, store.batch(batch))) == list(map(plain, own.batch(batch))), batch
            for namespace in [name for name, items in own._data.items() if not items]:
                del own._data[namespace]  # which it lists, once something was looked for in them or was deleted
            assert store.batch(lists) == own.batch(lists)
