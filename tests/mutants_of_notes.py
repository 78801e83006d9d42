"""Bugs of notes, and of messages that are taken back, that the suite must kill; see `mutants`."""

from __future__ import annotations

NOTES, STORED, LEDGER = (
    "tests/conformance/test_notes.py",
    "tests/test_notes.py",
    "tests/test_notes.py tests/test_ledger.py",
)
BACK = "tests/conformance/test_taking_back.py tests/test_trust_of_talk.py tests/test_trust_of_grants.py"

MUTANTS_OF_NOTES = [
    ("memoryd/domain/notes/keep.py", "there.now.trust.outranks(caller.trust)", "False", STORED),
    ("memoryd/domain/notes/keep.py", "draft.expected_revision not in {None, revision}", "False", NOTES),
    ("memoryd/domain/notes/keep.py", "None if note is None or note.is_expired(now) else note", "note", NOTES),
    ("memoryd/domain/notes/keep.py", "[note for note in page if not note.is_expired(now)]", "page", NOTES),
    ("memoryd/domain/notes/keep.py", "[: limits.MAX_NOTE_VERSIONS]", "", NOTES),
    ("memoryd/domain/notes/keep.py", "        await _touch(shown, ports, now)\n", "", NOTES),
    ("memoryd/domain/notes/keep.py", "    if held:", "    if False:", NOTES),
    ("memoryd/domain/notes/keep.py", "await check_texts(note", "await check_texts(() and note", STORED),
    ("memoryd/domain/notes/erase.py", "version.trust.outranks(caller.trust) or (", "(", STORED),
    ("memoryd/domain/notes/erase.py", "caller.trust.is_sandbox and note.scope.user_id is None", "False", STORED),
    ("memoryd/domain/notes/erase.py", 'prefix=f"{path}/" if path else ""', "prefix=path", NOTES),
    ("memoryd/domain/notes/erase.py", "one.id == seen.id and is_meant(one)", "one.id == seen.id", STORED),
    ("memoryd/domain/notes/naming.py", "version for version in known.versions if version.id not in ids", "known.versions[0],", NOTES),
    ("memoryd/domain/forgetting/catch_up.py", "    await erase_notes(gone, ports, now=now)\n", "", LEDGER),
    ("memoryd/domain/forgetting/catch_up.py", "    if missed.has(ErasedKind.NAME, owner):\n        await erase_meant", "    if False:\n        await erase_meant", LEDGER),
    ("memoryd/store/duckdb/note_rows.py", "_found(con, before.owner, before.path) != before", "False", NOTES),
    ("memoryd/store/duckdb/note_rows.py", "gone = [key for version", "gone = [][:0] and [key for version", LEDGER),
    ("memoryd/store/duckdb/notes.py", "            elif text:\n", "            elif False:\n", STORED),
    ("memoryd/domain/conversation/erase.py", "    if not all(map(caller.may_erase, messages)):", "    if False:", BACK),
    ("memoryd/domain/conversation/erase.py", "gone[0].seq <= thread.summary_seq and", "True and", BACK),
    ("memoryd/domain/conversation/append.py", "if not draft.says_the_same(message):", "if False:", BACK),
    ("memoryd/store/duckdb/queries.py", "contains(details, ?) AND details->>'$.source.thread_id' = ?", "contains(details, ?) AND ? <> ''", BACK),
]  # fmt: skip
