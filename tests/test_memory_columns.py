"""A field of a memory has one place: row, record and snapshot derive from it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.memory_columns import COLUMNS, PLAIN_DETAILS, memory_of, row_of
from memoryd.model.trust import Trust
from tests.builders import NOW, TEAM, memory
from tests.forking import run_command

ROOT = Path(__file__).parent.parent
FULL = memory(
    "ü \x1f \u2028", scope=TEAM, kind=Kind.EPISODE, subjects=("Ann", "Bob"), tags=("t",), category="c",
    metadata={"k": "v"}, key="key", source=Source("a", "b", "c", "d", ("e", "f")), confidence=0.25, decay_rate=0.0,
    trust=Trust.SANDBOX, grant_id="g", protected=True, recall_time=NOW, recall_count=3, reinforce_time=NOW,
    expire_time=NOW + timedelta(days=1), supersede_time=NOW, delete_time=NOW, purge_time=NOW, supersedes=("1", "2"),
    superseded_by="3", contested_with=("4",), judgement=Judgement("rule", "reason", "5"), delete_trust=Trust.HOST,
    import_id="old", external_id="m-1", judged=False,
    supersede_trust=Trust.SANDBOX, delete_reason="forgotten", trusted_recall_time=NOW, claims=("home",),
    mentions=(Mention("e" * 26, "Ann", Form.NAME, EntityType.PERSON, True, "s"),), enrich_time=NOW, author="bob",
)  # fmt: skip
# A field that no code knows but the class: it is stored, loaded into an index, and changed, by both stores' ways.
PROGRAM = """
import asyncio, dataclasses, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import memoryd
assert memoryd.__file__.startswith(sys.argv[1]), memoryd.__file__
from memoryd.index.records import pack, unpack
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.scope import Visibility
from tests.builders import memory, open_duckdb
from tests.index_helpers import OWNER, read_whole

async def main():
    made = memory("I swim", mood="calm", moods=("a", "b"), mood_time=memory().create_time)
    assert made == unpack(pack(made))
    store = open_duckdb(Path(sys.argv[2]))
    await store.commits.write(ChangeSet(inserts=(Entry(made, "swim"),)))
    (held,) = await store.memories.find(Visibility("default", "alice", None), made.id)
    assert made == held
    (loaded, _), = store.commits.memories.snapshot(OWNER, read_whole)
    assert made == loaded
    changed = dataclasses.replace(made, mood="", moods=("c",))
    await store.commits.write(ChangeSet(updates=(Entry(changed, "swim"),)))
    (loaded, _), = store.commits.memories.snapshot(OWNER, read_whole)
    assert changed == loaded
    await store.close()
    print("it is stored")

asyncio.run(main())
"""


def test_a_full_memory_says_something_in_every_field():
    for item in fields(Memory):
        default = item.default if item.default_factory is MISSING else item.default_factory()
        assert default is MISSING or getattr(FULL, item.name) != default, item.name


def test_a_memory_is_made_of_its_row_again():
    assert FULL == memory_of(FULL.owner, row_of(FULL))
    plain = memory("plain")
    assert plain == memory_of(plain.owner, row_of(plain))
    assert row_of(plain)[COLUMNS.index("details")] is None
    told = [PLAIN_DETAILS if name == "details" else value for name, value in zip(COLUMNS, row_of(plain), strict=True)]
    assert plain == memory_of(plain.owner, told)


@pytest.mark.parametrize("item", fields(Memory), ids=lambda item: item.name)
def test_each_field_alone_makes_its_way(item):
    if item.name not in {"agent_id", "scope"}:
        alone = replace(memory(), **{item.name: getattr(FULL, item.name)})
        assert alone == memory_of(alone.owner, row_of(alone))


def test_times_are_kept_to_the_microsecond():
    made = memory(expire_time=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    assert made == memory_of(made.owner, row_of(made))


def test_a_new_field_has_one_place(tmp_path):
    shutil.copytree(ROOT / "memoryd", tmp_path / "memoryd", ignore=shutil.ignore_patterns("__pycache__", "data"))
    (tmp_path / "memoryd/embedding/data").symlink_to(ROOT / "memoryd/embedding/data")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    source = tmp_path / "memoryd/model/memory.py"
    text = source.read_text()
    field = '    author: str = field(default="", metadata=_OWN)\n'
    assert 1 == text.count(field)
    more = '    mood: str = ""\n    moods: tuple[str, ...] = ()\n    mood_time: datetime | None = None\n'
    source.write_text(text.replace(field, field + more))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(tmp_path / "store")]
    done = run_command(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "it is stored\n" == done.stdout, done.stderr
