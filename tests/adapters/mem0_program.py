"""One program for mem0's own `Memory` and for ours: what each step answers, by its name."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
import zlib
from pathlib import Path

IDS = ("id", "memory_id", "created_at", "updated_at", "hash", "score")


def told(value, user: str):
    """An answer without what differs by its nature: ids, times, scores, and who the user is."""
    if isinstance(value, dict):
        return {key: told(one, user) for key, one in value.items() if key not in IDS}
    if isinstance(value, list | tuple):
        return [told(one, user) for one in value]
    return "the user" if value == user else value


def program(memory) -> dict[str, object]:
    """Run each step, and return what it answers, or which error it ends with."""
    user = f"u{uuid.uuid4().hex[:8]}"
    of_user = {"user_id": user}
    answers: dict[str, object] = {}

    def step(name, do):
        try:
            answers[name] = told(do(), user)
        except Exception as error:  # noqa: BLE001  which one is what is compared
            answers[name] = type(error).__name__

    def add(text, **more):
        return memory.add(text, **{"user_id": user, "infer": False, **more})["results"]

    def texts(**filters):
        found = memory.get_all(filters={**of_user, **filters}, top_k=100)["results"]
        return sorted(item["memory"] for item in found)

    def found(query, **filters):
        return sorted(item["memory"] for item in memory.search(query, filters={**of_user, **filters})["results"])

    first = add("I like green tea", metadata={"cat": "food", "n": 3, "deep": {"a": [1, None]}})[0]
    step("an item of add", lambda: first)
    step("get", lambda: memory.get(first["id"]))
    step("get of none", lambda: memory.get(str(uuid.uuid4())))
    step("search", lambda: memory.search("green tea", filters=of_user)["results"])
    step("get_all", lambda: memory.get_all(filters=of_user)["results"])
    step("a conversation", lambda: add([
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "my dog is called Rex", "name": "ann"},
        {"role": "assistant", "content": "Rex is a fine name"}, {"role": "user"},
    ]))  # fmt: skip
    step("a dict", lambda: add({"role": "user", "content": "the boat is moored in Hull"}))
    step("equal", lambda: texts(cat="food"))
    for name, condition in {
        "gte": {"n": {"gte": 2}}, "lt": {"n": {"lt": 3}}, "in": {"cat": {"in": ["food", "x"]}},
        "ne": {"cat": {"ne": "x"}},
        "contains": {"cat": {"contains": "food"}}, "OR": {"OR": [{"cat": "food"}, {"cat": "x"}]},
        "AND": {"AND": [{"cat": "food"}, {"n": 3}]}, "NOT": {"NOT": [{"cat": "x"}]},
        "an unknown one": {"n": {"around": 3}},
    }.items():  # fmt: skip
        step(f"a filter: {name}", lambda condition=condition: found("green tea", **condition))
    step("a run", lambda: (add("the meeting is at three", run_id="r1"), texts(run_id="r1"))[1])
    step("an agent", lambda: (add("Ann likes jazz", agent_id="bot"), texts(agent_id="bot"), texts())[1:])
    step("top_k", lambda: len(memory.get_all(filters=of_user, top_k=2)["results"]))
    step("top_k 0", lambda: memory.search("tea", filters=of_user, top_k=0)["results"])
    step("update", lambda: memory.update(first["id"], text="I like black tea"))
    step("get after it, by the same id", lambda: memory.get(first["id"])["memory"])
    step("texts after it", texts)
    step("update of metadata", lambda: (
        memory.update(first["id"], metadata={"cat": "drink", "user_id": "x"}), memory.get(first["id"])["metadata"],
    ))  # fmt: skip
    step("update of an end", lambda: (
        memory.update(first["id"], expiration_date="2099-01-02"), memory.get(first["id"])["expiration_date"],
        memory.update(first["id"], expiration_date=None), memory.get(first["id"]).get("expiration_date"),
    ))  # fmt: skip
    step("update of nothing", lambda: memory.update(first["id"]))
    step("update of none", lambda: memory.update(str(uuid.uuid4()), text="x"))
    step(
        "history",
        lambda: [(one["event"], one["old_memory"], one["new_memory"]) for one in memory.history(first["id"])][:2],
    )
    for name, call in {
        "ids at the top": lambda: memory.search("tea", user_id=user), "no ids": memory.get_all,
        "add without ids": lambda: memory.add("x", infer=False), "an id with a space": lambda: add("x", user_id="a b"),
        "an empty id": lambda: memory.get_all(filters={"user_id": " "}),
        "a number as id": lambda: add("five", user_id=5),
        "no query": lambda: memory.search(" ", filters=of_user), "threshold 2": lambda: memory.search(
            "tea", filters=of_user, threshold=2), "top_k -1": lambda: memory.get_all(filters=of_user, top_k=-1),
        "a number as messages": lambda: add(7), "a bad date": lambda: add("x", expiration_date="soon"),
        "delete_all without ids": memory.delete_all, "timestamp": lambda: add("x", timestamp=1),
    }.items():  # fmt: skip
        step(name, call)
    step("delete", lambda: memory.delete(first["id"]))
    step("get after it", lambda: memory.get(first["id"]))
    step("delete again", lambda: memory.delete(first["id"]))
    step("delete_all of a run", lambda: (memory.delete_all(user_id=user, run_id="r1"), texts(run_id="r1"))[1])
    step("delete_all", lambda: (memory.delete_all(user_id=user), texts())[1])
    return answers


def real():
    """mem0's own Memory: no model, words as vectors, files in a folder of its own."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": tempfile.mkdtemp()}
    from mem0 import Memory

    place = os.environ["MEM0_DIR"]
    store = {"path": f"{place}/q", "embedding_model_dims": 64, "on_disk": True}
    memory = Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": store}, "history_db_path": f"{place}/history.db",
        "embedder": {"provider": "openai", "config": {"api_key": "x", "embedding_dims": 64}},
        "llm": {"provider": "openai", "config": {"api_key": "x"}},
    })  # fmt: skip

    class Words:
        config = None

        def embed(self, text, *_, **__):
            vector = [0.0] * 64
            for word in text.lower().split():
                vector[zlib.crc32(word.encode()) % 64] += 1
            return vector

        def embed_batch(self, texts, *_, **__):
            return [self.embed(text) for text in texts]

    memory.embedding_model = Words()
    return memory


def main() -> None:
    """Write what mem0 answers; takes mem0ai 2.2.1 in the environment."""
    path = Path(__file__).with_name("mem0_answers.json")
    path.write_text(json.dumps(program(real()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
