"""The files of the ledger of purges: cut, damaged, foreign, lost, or on a disk that takes nothing."""

from __future__ import annotations

import errno
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.audit.log import AuditLog
from memoryd.errors import Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.store import lines
from memoryd.store.ledger import KEY, LINES, PurgeLedger, PurgeMark, check_ledger
from memoryd.store.opening import StoreRefused
from tests.builders import NOW, entry, memory


def opened(folder: Path, noted: int | PurgeMark = 0, store_id: str = "s", history_id: str = "") -> PurgeLedger:
    mark = PurgeMark(noted) if isinstance(noted, int) else noted
    return PurgeLedger(folder, store_id, mark, random_bytes=os.urandom, history_id=history_id)


def purge(n: int) -> ChangeSet:
    return ChangeSet(purges=(memory(id=f"m{n}"),), marks={PURGE: NOW})


def test_a_damaged_foreign_or_keyless_ledger_is_refused_with_a_way_out(folder):
    place = folder / "ledger"
    ledger = opened(place)
    for n in (1, 2, 3):
        assert n == ledger.record([purge(n)], n)
    ledger.close()
    assert 3 == opened(place, 3).last
    with pytest.raises(StoreRefused, match="not the ledger of purges of this database"):
        opened(place, 3, "another")
    whole = (place / LINES).read_bytes()
    for at in range(len(whole.splitlines()[0]) + 5, len(whole) - 1, 7):
        broken = bytearray(whole)
        broken[at] ^= 4
        (place / LINES).write_bytes(broken)
        with pytest.raises(StoreRefused, match="damaged in line"):
            opened(place).missed()
    (place / LINES).write_bytes(whole)
    (place / KEY).rename(place / "away")
    with pytest.raises(StoreRefused, match="is missing, so no one can tell"):
        opened(place, 3)
    (place / KEY).write_text("ab\n")
    with pytest.raises(StoreRefused, match="holds no key"):
        opened(place, 3)


def test_a_ledger_that_is_cut_anywhere_keeps_its_whole_lines(folder):
    place = folder / "ledger"
    ledger = opened(place)
    for n in range(1, 6):
        ledger.record([purge(n)], n)
    ledger.close()
    whole = (place / LINES).read_bytes()
    for end in range(len(whole) + 1):
        (place / LINES).write_bytes(whole[:end])
        ledger = opened(place)
        assert max(0, whole[:end].count(b"\n") - 1) == ledger.last
        last = ledger.last
        assert (last > 0) == ledger.is_behind
        if ledger.is_behind:
            assert 0 == ledger.record([purge(9)], 9)  # an older store is cleaned first
            ledger.catch_up()
            ledger.caught_up()
        assert last + 1 == ledger.record([purge(9)], 9)
        ledger.close()


def test_a_lost_or_older_ledger_is_told(folder):
    place = folder / "ledger"
    assert "does not know the first 4 purges" in opened(place, 4).gap
    again = opened(place, 4)
    assert ("", 5) == (again.gap, again.record([purge(5)], 5))
    older = opened(place, 8)
    assert "ends at purge 5; the database knows 8" in older.gap
    assert 9 == older.record([purge(9)], 9)
    assert {ErasedThing(ErasedKind.MEMORY, memory().owner, id="m9").digest(older._key)} == opened(
        place, 8
    ).missed().digests


def test_where_the_ledger_cannot_be_written_nothing_is_purged(folder, monkeypatch):
    ledger = opened(folder / "ledger")
    size = (folder / "ledger" / LINES).stat().st_size

    def full(handle, data):
        os.pwrite(handle, bytes(data[:10]), size)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as planted:
        planted.setattr(lines, "write_all", full)
        with pytest.raises(Unavailable, match="nothing was purged"):
            ledger.record([purge(1)], 1)
    assert size == (folder / "ledger" / LINES).stat().st_size
    assert 1 == ledger.record([purge(1)], 1)
    with monkeypatch.context() as planted:
        planted.setattr(lines.os, "fdatasync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
        with pytest.raises(Unavailable, match="did not reach the disk"):
            ledger.record([purge(2)], 2)
    with pytest.raises(Unavailable, match="until memoryd starts again"):
        ledger.record([purge(2)], 2)
    assert 0 == ledger.record([ChangeSet(inserts=(entry("new"),))], 3)


def test_nothing_that_only_hides_is_written_down(folder):
    ledger = opened(folder / "ledger")
    hidden = replace(memory(), delete_time=NOW)
    assert 0 == ledger.record([ChangeSet(updates=(entry(hidden),))], 1)
    assert 1 == len((folder / "ledger" / LINES).read_text().splitlines())


def test_a_ledger_of_another_history_is_refused(folder):
    place, other = folder / "ledger", folder / "other"
    ledger = opened(place)
    for n in (1, 2):
        ledger.record([purge(n)], n)
    known = ledger.mark
    shutil.copytree(place, other)
    assert not opened(place, known).is_behind
    restored = opened(other, known, history_id="h1")
    assert restored.is_behind
    assert not restored.missed()
    mark = restored.catch_up()
    restored.caught_up()
    assert (3, 4) == (mark.number, restored.record([purge(3)], 1_000_003))
    assert not opened(other, restored.mark, history_id="h1").is_behind
    ledger.record([purge(7)], 3)  # the lost store had gone on after all
    with pytest.raises(StoreRefused, match="of another history of this store: it ends at purge 3, the database at 3"):
        opened(place, mark, history_id="h1")


def test_a_pipe_in_place_of_the_ledger_or_the_audit_log_is_refused_at_once(folder):
    for path in (folder / LINES, folder / "audit.jsonl"):
        os.mkfifo(path)
    with pytest.raises(StoreRefused, match="no file"):
        check_ledger(folder, "store")
    log = AuditLog(folder / "audit.jsonl")
    with pytest.raises(Unavailable, match="it is a link, a pipe or a device, and no file"):
        log.check_writable()
    log.close()


@pytest.mark.parametrize("step", [1, 2, 7, 64, 1 << 16])
def test_lines_are_read_from_the_end_as_from_the_begin_whatever_is_read_at_a_time(folder, step, monkeypatch):
    monkeypatch.setattr(lines, "STEP_BYTES", step)
    path = folder / "lines"
    rng = random.Random(step)
    for count in (0, 1, 2, 9):
        path.unlink(missing_ok=True)
        file = lines.LineFile(path)
        written = [{"n": n, "text": "x\r" * rng.randrange(40)} for n in range(count)]
        raw = [file.write(line) for line in written]
        file.close()
        with path.open("ab") as torn:
            torn.write(b'{"n":' * rng.randrange(2))
        assert sum(len(line) + 1 for line in raw) == lines.sound_end(path)
        file = lines.LineFile(path)
        assert path.stat().st_size == file.end == sum(len(line) + 1 for line in raw)
        assert (raw[0] if raw else b"") == file.first()
        assert list(zip(written, raw, strict=True))[:0:-1] == list(file.backwards())
        with path.open("ab") as damaged:
            damaged.write(b'{"n":1,"crc":5}\n')
        file.close()
        file = lines.LineFile(path)
        file.cut()
        assert path.stat().st_size == sum(len(line) + 1 for line in raw)
        file.close()


def test_a_line_of_many_megabytes_is_read_in_a_pass(folder, monkeypatch):
    reads, real = [], os.pread
    monkeypatch.setattr(lines.os, "pread", lambda *args: reads.append(args[1]) or real(*args))
    path = folder / "lines"
    file = lines.LineFile(path)
    for text in ("a", "x" * (8 << 20), "b"):
        file.write({"text": text})
    file.close()
    file = lines.LineFile(path)
    reads.clear()
    assert ["b", "x" * (8 << 20)] == [line["text"] for line, _ in file.backwards()]
    assert sum(reads) == path.stat().st_size - 1
    file.close()
