"""Planted bugs of what keeps a store for years: the ledger of purges, backups; see mutants.md."""

from __future__ import annotations

MUTANTS_OF_OPERATIONS = [
    (
        "memoryd/store/duckdb/purges.py",
        "    return partial(ledger.void, number)",
        "    return no_purge",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/store/duckdb/purges.py",
        '        [f"{mark.number}:{mark.digest}"],',
        '        [f"{mark.number}:"],',
        "tests/test_backup_histories.py",
    ),
    (
        "memoryd/store/ledger.py",
        '            if line["purge"] in void:',
        "            if False:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/store/ledger.py",
        '            if line.get("purge", 0) <= self._noted:',
        "            if False:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/store/lines.py",
        "            os.ftruncate(self._file, whole)",
        "            pass",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/store/ledger.py",
        "        if not things or self.is_behind:",
        "        if not things:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "    if missed.has(ErasedKind.OWNER, owner):",
        "    if False:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "    if missed.has(ErasedKind.THREAD, owner, thread.id):",
        "    if False:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "if missed.has(ErasedKind.MESSAGE, owner, thread.id, head.id)]",
        "if False]",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "    if tombstones:",
        "    if False:",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "        return bool(text) and (is_all or (has_names and _names_missed(text, owner, missed)))",
        "        return bool(text) and is_all",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/domain/forgetting/catch_up.py",
        "            if memory.id not in ids and _mentioned(memory, missed) != memory.mentions",
        "            if False",
        "tests/test_ledger_file.py tests/test_ledger.py",
    ),
    (
        "memoryd/store/duckdb/compactor.py",
        "            if not self._writer.checkpoints.has_room():",
        "            if False:",
        "tests/test_full_disk.py",
    ),
    (
        "memoryd/store/duckdb/compactor.py",
        "        with self._written(con):",
        "        if True:",
        "tests/test_full_disk.py",
    ),
    (
        "memoryd/store/duckdb/compact.py",
        "if name not in LARGE and not _is_equal(con, name):",
        "if name not in LARGE:",
        "tests/test_forgotten.py",
    ),
    (
        "memoryd/store/duckdb/opening.py",
        "        found = prove_unchanged(path, noted, memory_limit_bytes, latest=len(migrations), reads_all=False)",
        '        found = Header(UUID(int=0), 0, 0, b"", 0)',
        "tests/test_full_disk.py",
    ),
    ("memoryd/store/duckdb/damage.py", "text = next((line", 'text = "" and next((line', "tests/test_damage.py"),
    (
        "memoryd/daemon/serve.py",
        "self._exit = EXIT_REFUSED if damaged else EXIT_FATAL",
        "self._exit = EXIT_FATAL",
        "tests/test_damage.py",
    ),
    (
        "memoryd/store/duckdb/checkpoints.py",
        "        self.keep_log()\n        began",
        "        began",
        "tests/test_backup.py",
    ),
    (
        "memoryd/store/duckdb/checkpoints.py",
        "        if tails is None or not (tails.is_copied or tails.is_new):",
        "        if True:",
        "tests/test_backup.py",
    ),
    (
        "memoryd/store/duckdb/shipping.py",
        "            self._taken = 0\n            self._waiting = [",
        "            self._waiting = [",
        "tests/test_backup.py",
    ),
    (
        "memoryd/backup/chain.py",
        "                    if digest_of(block) != digest:",
        "                    if False:",
        "tests/test_backup.py",
    ),
    (
        "memoryd/backup/chain.py",
        "                    if digest_of(data) != piece.digest:",
        "                    if False:",
        "tests/test_backup.py",
    ),
    (
        "memoryd/backup/chain.py",
        "            os.ftruncate(handle, tail.start)  # what no line names",
        "            pass",
        "tests/test_backup.py",
    ),
    (
        "memoryd/backup/folder.py",
        "        if chain is proved or _last_time",
        "        if _last_time",
        "tests/test_backup.py",
    ),
    (
        "memoryd/backup/shipper.py",
        "None if current else commit_seq, to_us",
        "commit_seq, to_us",
        "tests/test_backup.py",
    ),
    (
        "memoryd/store/duckdb/restoring.py",
        "    commit_seq = (max(header.commit_seq, above) // JUMP + 1) * JUMP",
        "    commit_seq = header.commit_seq",
        "tests/test_backup.py",
    ),
    ("memoryd/backup/folder.py", "            if is_begun(path):", "            if True:", "tests/test_backup.py"),
]
