"""Bugs of notes, and of messages that are taken back, that the suite must kill; see `mutants`."""

from __future__ import annotations

NOTES, STORED, ELSEWHERE = (
    "tests/conformance/test_notes.py",
    "tests/test_notes.py",
    "tests/test_notes_elsewhere.py tests/test_ledger.py",
)
BACK = "tests/conformance/test_taking_back.py tests/test_trust_of_talk.py tests/test_trust_of_grants.py"

MUTANTS_OF_NOTES = [
    ("memoryd/domain/notes/keep.py", "note.now.trust.outranks(caller.trust)", "False", STORED),
    ("memoryd/domain/notes/keep.py", "draft.expected_revision not in {None, revision}", "False", NOTES),
    ("memoryd/domain/notes/reading.py", "None if note is None or note.is_expired(now) else note", "note", NOTES),
    ("memoryd/domain/notes/keep.py", "limit=size + 1, live_at=now", "limit=size + 1", NOTES),
    ("memoryd/domain/notes/keep.py", "while len(left) > limits.MAX_NOTE_VERSIONS", "while len(left) > 99", NOTES),
    ("memoryd/domain/notes/keep.py", "(own or former or left)[-1]", "left[-1]", STORED),
    ("memoryd/domain/notes/keep.py", "and not may_erase(note, caller):", "and False:", STORED),
    ("memoryd/domain/notes/keep.py", "if is_own else note.read_at(now)", "if True else note", STORED),
    ("memoryd/domain/notes/keep.py", "        await _touch(shown, ports, now)\n", "", NOTES),
    ("memoryd/domain/notes/keep.py", "later = known.read_at(now)", "later = note.read_at(now)", STORED),
    ("memoryd/domain/notes/keep.py", "    if await holds_credential(draft, caller, ports, now):", "    if False:", NOTES),
    ("memoryd/domain/notes/keep.py", "await check_texts(note", "await check_texts(() and note", STORED),
    ("memoryd/domain/notes/keep.py", "version.trust.outranks(caller.trust) or (", "(", STORED),
    ("memoryd/domain/notes/keep.py", "caller.trust.is_sandbox and note.scope.user_id is None", "False", STORED),
    ("memoryd/domain/notes/erase.py", 'prefix = f"{path}/" if path else ""', "prefix = path", NOTES),
    ("memoryd/domain/notes/erase.py", "if is_meant(note)]", "]", STORED),
    ("memoryd/domain/notes/reading.py", "    if elsewhere:", "    if False:", STORED),
    ("memoryd/domain/notes/erase.py", '    refuse_token(new_path, "new_path", ports)\n', "", STORED),
    ("memoryd/domain/notes/naming.py", "version for version in known.versions if version.id not in ids", "known.versions[0],", NOTES),
    ("memoryd/domain/notes/naming.py", "            check(known)\n", "", STORED),
    ("memoryd/domain/notes/naming.py", "else tuple(version_erased", "erased = () and", ELSEWHERE),
    ("memoryd/domain/transfer/notes.py", "if not is_next or note", "if note", ELSEWHERE),
    ("memoryd/domain/transfer/export.py", "if record.version.revision < int(revision):", "if True:", ELSEWHERE),
    ("memoryd/model/note.py", "later = min(later, self.end_time)", "pass", STORED),
    ("memoryd/store/notes.py", "(updates if was else inserts)", "inserts", NOTES),
    ("memoryd/store/duckdb/note_writes.py", "if before is None or note.loses_vector:", "if before is None:", STORED),
    ("memoryd/service/memory.py", "            call.session.require(Permission.NOTES)\n", "            pass\n", STORED),
    ("memoryd/domain/forgetting/catch_up.py", "        await erase_notes(gone, ports, now=now)\n", "", ELSEWHERE),
    ("memoryd/domain/forgetting/catch_up.py", "    if missed.has(ErasedKind.NAME, owner):\n        await erase_meant", "    if False:\n        await erase_meant", ELSEWHERE),
    ("memoryd/store/duckdb/note_writes.py", "_found(con, before.owner, before.path) != before", "False", NOTES),
    ("memoryd/store/duckdb/note_writes.py", "gone = [key for version", "gone = [][:0] and [key for version", ELSEWHERE),
    ("memoryd/store/duckdb/notes.py", "            elif text:\n", "            elif False:\n", STORED),
    ("memoryd/domain/conversation/erase.py", "    if not all(map(caller.may_erase, messages)):", "    if False:", BACK),
    ("memoryd/domain/conversation/erase.py", "gone[0].seq <= thread.summary_seq and", "True and", BACK),
    ("memoryd/domain/conversation/append.py", "if not draft.says_the_same(message):", "if False:", BACK),
    ("memoryd/store/duckdb/queries.py", "contains(details, ?) AND details->>'$.source.thread_id' = ?", "contains(details, ?) AND ? <> ''", BACK),
]  # fmt: skip
