"""Bugs of several daemons before one store that the suite must kill; see `mutants`."""

# fmt: off
from __future__ import annotations

TWO_GRANTS, TWO_WORK = "tests/test_two_daemons_grants.py", "tests/test_two_daemons_work.py"

MUTANTS_OF_DAEMONS = [
    ("memoryd/domain/pipeline.py", "replace(first, grants_seen=seen)", "first", TWO_GRANTS),
    ("memoryd/identity/grants.py", "seen=self._head)", "seen=None)", TWO_GRANTS),
    ("memoryd/identity/grants.py", "known[grant.id] if known.get(grant.id) == grant else grant", "grant", TWO_GRANTS),
    ("memoryd/identity/grants.py", "            await self._take_in()\n            known =", "            known =", TWO_GRANTS),
    ("memoryd/identity/grants.py", "        self._head += 1  #", "        self._head = await self._store.grants.head()  #", TWO_GRANTS),
    ("memoryd/service/gate.py", "        await self._grants.refresh()\n", "", TWO_GRANTS),
    ("memoryd/store/recent.py", "                owners.add(None)\n", "                pass\n", TWO_GRANTS),
    ("memoryd/domain/conversation/sessions.py", "threads=(changed,), sessions=(session,)", "sessions=(session,)", TWO_WORK),
    ("memoryd/daemon/jobs.py", "        elif latest.state is RunState.RUNNING:", "        elif False:", TWO_WORK),
    ("memoryd/store/duckdb/work_writes.py", 'running = "id = ? AND state = ?", [run_id,', 'running = "id = ? OR state = ?", [run_id,', "tests/conformance/test_work.py"),
    ("memoryd/index/cache.py", "if head.purge_seq > index.commit_seq and self", "if False and self", TWO_WORK),
    ("memoryd/domain/forgetting/elsewhere.py", "        if marked == self._seen:", "        if True:", TWO_WORK),
    ("memoryd/domain/pages.py", "if holder == DONE or holds(", "if holds(", TWO_WORK),
    ("memoryd/domain/pages.py", "    if leases.get(name) != mine or first < counter:", "    if first < counter:", TWO_WORK),
    ("memoryd/domain/pages.py", "if holder == DONE}, **ended}", "}, **ended}", TWO_WORK),
    ("memoryd/domain/claims.py", "leases_before={lease.name: known}", "leases_before={}", TWO_WORK),
    ("memoryd/learning/follow.py", "                if not is_mine:  #", "                if False:  #", TWO_WORK),
    ("memoryd/store/duckdb/writer.py", "            self._heads.grants += change.changes_grants\n", "", TWO_GRANTS),
    ("memoryd/store/duckdb/usage.py", "            self.said[message.grant_id, message.create_time.date()] += 1", "            pass", "tests/test_two_daemons.py"),
    ("memoryd/identity/grants.py", "        store.commits.messages.follow(self._follow_messages)\n", "", "tests/test_two_daemons.py"),
    ("memoryd/domain/people/decide.py", "- _part_of(entity_id, people)", "- {entity_id}", "tests/conformance/test_people.py"),
]
