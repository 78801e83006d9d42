"""Faults of single files under a real daemon, some of them; `make faults` tries every kind on every file."""

from __future__ import annotations

import pytest

from tests.faults import FaultKind, compiler
from tests.faults.campaign import try_faults

SOME = [
    ("log", FaultKind.SYNC_ERROR),
    ("log", FaultKind.SHORT_WRITE),
    ("side file", FaultKind.WRITE_ERROR),
    ("ledger", FaultKind.SYNC_ERROR),
    ("audit", FaultKind.FULL),
    ("audit", FaultKind.SHORT_WRITE),
    ("backup, log", FaultKind.FULL),
]


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_a_fault_of_one_file_loses_nothing_and_is_told(folder):
    rows = try_faults(folder, SOME)
    assert all(row.hits for row in rows)
    assert [0, 0] == [row.refused for row in rows if row.kind is FaultKind.SHORT_WRITE]
    assert [] == [(row.target, row.kind.name, row.broken) for row in rows if row.broken]
