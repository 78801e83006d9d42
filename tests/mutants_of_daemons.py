"""Bugs of several daemons before one store that the suite must kill; see `mutants`."""

# fmt: off
from __future__ import annotations

TWO_GRANTS, TWO_WORK = "tests/test_two_daemons_grants.py", "tests/test_two_daemons_work.py"
PG = "tests/test_postgres.py"

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
    ("memoryd/index/cache.py", "is_behind = head.purge_seq > index.commit_seq", "is_behind = False", TWO_WORK),
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
    ("memoryd/store/postgres/heads.py", " WHERE %s::bigint IS NULL OR h.commit_seq <= %s", " WHERE %s::bigint IS NULL OR %s::bigint IS NOT NULL", "tests/conformance/test_store.py"),
    ("memoryd/store/postgres/heads.py", "= %s THEN 0\"\n    \" ELSE contended('grants", "= %s THEN 0\"\n    \" ELSE length('grants", TWO_GRANTS),
    ("memoryd/store/postgres/commits.py", "            if not was_written:\n                raise", "            if False:\n                raise", PG),
    ("memoryd/store/postgres/commits.py", "return  # who follows fetches it", "raise told from None  # who follows fetches it", PG),
    ("memoryd/store/postgres/commits.py", "    if warned:", "    if False:", PG),
    ("memoryd/store/postgres/conversations.py", "m.number < feed_end() AND m.text_bytes", "m.text_bytes", PG),
    ("memoryd/store/postgres/conversations.py", "AND number < feed_end() ORDER", "ORDER", PG),
    ("memoryd/store/postgres/following.py", "if since > seq or purge_seq > since:", "if since > seq:", "tests/conformance/test_store.py"),
    ("memoryd/store/postgres/opening.py", '    if encoding != "UTF8":', "    if False:", PG),
    ("memoryd/store/postgres/opening.py", "if version > len(MIGRATIONS) + 1:", "if version > len(MIGRATIONS) + 9:", PG),
    ("memoryd/store/postgres/schema.sql", "    IF known IS NULL THEN RETURN false; END IF;", "    RETURN false;", PG),
    ("memoryd/store/postgres/opening.py", "            if (new := rows.facets_text(rows.memory_of(row))) != old", "            if (new := rows.facets_text(rows.memory_of(row))) == old", PG),
    ("memoryd/store/postgres/skew.py", "            self._ahead = ahead", "            pass", "tests/test_postgres_daemons.py"),
    ("memoryd/store/postgres/usage.py", 'AND written_messages = 0", key)', '", key)', "tests/test_two_daemons.py"),
    ("memoryd/store/postgres/receipts.py", " AND i.rank = 0", "", "tests/conformance/test_receipts.py"),
    ("memoryd/store/postgres/changes.py", '_purge(statements, key, "id = ANY(%s)", ids)', '_purge(statements, key, "id = ANY(%s) AND false", ids)', "tests/conformance/test_store.py"),
    ("memoryd/store/postgres/note_writes.py", "contended('{CHANGED}')", "length('{CHANGED}')", "tests/conformance/test_notes.py"),
    ("memoryd/store/postgres/work_writes.py", "greatest(w.seq, excluded.seq)", "excluded.seq", "tests/conformance/test_work.py"),
    ("memoryd/store/postgres/connect.py", 'given["password"] = self.password_file.read_text()', 'given["user"] = self.password_file.read_text()', PG),
    ("memoryd/index/cache.py", "if head.is_exact and seen > head.commit_seq:", "if False:", PG),
    ("memoryd/store/postgres/connect.py", " configure=_note_generation,", "", "tests/test_postgres_failover.py"),
    ("memoryd/store/postgres/connect.py", "(con is not None and con.broken)", "False", PG),
]
