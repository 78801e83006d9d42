"""
`make mutants`: bugs that the suite must kill, planted one at a time in a copy of the project.

A mutant that survives means that a rule has no test. mutants.md says what each one breaks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEHAVIOUR, STORE, INDEX = (
    "tests/conformance/test_behaviour.py",
    "tests/conformance/test_store.py",
    "tests/test_index.py",
)

PATIENCE_S = 60

# (file, what stands there, what is planted, the tests that must fail)
MUTANTS = [
    ("memoryd/store/duckdb/queries.py", '"agent_id = ? AND user_id = ?", [owner.agent_id, owner.scope.user_id]',
     '"agent_id = ? AND (true OR user_id = ?)", [owner.agent_id, owner.scope.user_id]', STORE),
    ("memoryd/store/duckdb/queries.py", '"agent_id = ? AND chat_id = ?"', '"agent_id <> ? AND chat_id = ?"', STORE),
    ("memoryd/store/duckdb/queries.py", "create_time = ? AND id < ?", "create_time = ? AND id <= ?", STORE),
    ("memoryd/store/duckdb/queries.py", "(expire_time IS NULL OR expire_time > ?)",
     "(expire_time IS NULL OR expire_time >= ?)", BEHAVIOUR),
    ("memoryd/store/duckdb/queries.py", "{column} < ?", "{column} <= ?", STORE),
    ("memoryd/store/duckdb/writer.py", "            _roll_back(con)\n            raise",
     '            con.execute("COMMIT")\n            raise', "tests/test_fault_sweep.py"),
    ("memoryd/store/duckdb/writer.py", "                self._commit_jobs([job])",
     "                job.loop.call_soon_threadsafe(_finish, job, 0, error)", STORE),
    ("memoryd/store/duckdb/writer.py", "self._opened.guard.advance(self._seq)", "pass", "tests/test_opening.py"),
    ("memoryd/store/duckdb/opening.py", "if commit_seq < noted[1] and", "if commit_seq > noted[1] and",
     "tests/test_opening.py"),
    ("memoryd/store/duckdb/store.py", '        source, params = queries.union_of_owners(visible, (f"id >= ?',
     '        source, params = queries.union_of_owners(visible, (f"true OR id >= ?', STORE),
    ("memoryd/index/scope.py", "mask &= self._expires.view(count) > to_us(now)",
     "mask &= self._expires.view(count) >= to_us(now)", INDEX),
    ("memoryd/index/scope.py", "        self._alive.view()[document] = False\n", "", INDEX),
    ("memoryd/index/scope.py", "        if unwanted:", "        if False:", INDEX),
    ("memoryd/index/cache.py", "if applied.commit_seq <= index.commit_seq:",
     "if applied.commit_seq < index.commit_seq:", INDEX),
    ("memoryd/index/cache.py", "                self._missed[owner].append(applied)", "                pass", INDEX),
    ("memoryd/index/vectors.py", "slack = lost + (1 + lost) * float(losses[0]) + ROUNDING", "slack = 0.0", INDEX),
    ("memoryd/index/postings.py", "MIN_B, MAX_B = 0.3, 1.0", "MIN_B, MAX_B = 0.75, 0.75", INDEX),
    ("memoryd/domain/judge.py", "if not draft.key or not known.key:", "if True:", BEHAVIOUR),
    ("memoryd/domain/judge.py", "metadata: Mapping[str, str] = {**draft.metadata, **known.metadata}",
     "metadata: Mapping[str, str] = {**known.metadata, **draft.metadata}", BEHAVIOUR),
    ("memoryd/domain/judge.py", "None if known is None or added is None else max(known, added)", "known or added",
     BEHAVIOUR),
    ("memoryd/domain/add.py", "async with ports.owner_lock(*owners):", "if True:", BEHAVIOUR),
    ("memoryd/domain/requests.py", "if known is not None and known.payload_hash != self._payload_hash:", "if False:",
     BEHAVIOUR),
    ("memoryd/domain/browse.py", "not hmac.compare_digest(mac, _mac(body, secret, bound))", "False", BEHAVIOUR),
    ("memoryd/domain/browse.py", "limit=size + 1", "limit=size", BEHAVIOUR),
    ("memoryd/domain/context.py", '.replace("<", "&lt;")', "", "tests/test_context.py"),
    ("memoryd/embedding/scheduler.py", "self._lines[line] = waiting  # to the end",
     "self._lines[line] = waiting; self._lines.move_to_end(line, last=False)  # to the front",
     "tests/test_embedding.py"),
    ("memoryd/embedding/scheduler.py", "known = self._remembered.get((owner, text))",
     "known = next((v for (o, t), v in self._remembered.items() if t == text), None)", "tests/test_embedding.py"),
    ("memoryd/model.py", "if size > limit:", "if size > limit + 1:", "tests/test_model.py"),
]  # fmt: skip


def killed(copy: Path, tests: str) -> bool:
    env = {
        **os.environ,
        "PYTHONPATH": f"{copy}:{copy / 'client'}:{copy / 'sandbox_cli'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests]
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return True  # pages that never end are a bug that shows
    return done.returncode == 1


def main() -> int:
    """Plant each mutant; return how many survived."""
    survivors = 0
    for number, (name, old, new, tests) in enumerate(MUTANTS, 1):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "build"))
            text = (copy / name).read_text()
            if text.count(old) < 1:
                print(f"{number:>2} {name}: what it replaces is gone: {old!r}")
                survivors += 1
                continue
            (copy / name).write_text(text.replace(old, new, 1))
            dead = killed(copy, tests)
        survivors += not dead
        print(f"{number:>2} {'killed' if dead else 'SURVIVED'}  {name}: {new[:70]!r}", flush=True)
    print(f"{len(MUTANTS) - survivors} passed, {survivors} failed")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main())
