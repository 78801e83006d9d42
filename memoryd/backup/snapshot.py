"""
A snapshot: one state of a store as one tar file, for an archive, or to be piped to what encrypts or uploads.

It is a folder of backups with one chain of one image, and the ledger of purges. The image is a logical copy of the
database: the state without the bytes of what had been purged before it.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from memoryd.backup.chain import MANIFEST, BackupDamaged, Chain, Point
from memoryd.backup.chain_writer import ChainWriter
from memoryd.backup.encryption import OF_CHAIN
from memoryd.backup.folder import DATABASE, chain_name, chains_of, history_folder, mark_of_chains, store_id_of
from memoryd.backup.ledgers import LEDGER, LedgerMark, check_mark, copy_ledger
from memoryd.backup.scratch import scratch
from memoryd.store.opening import prove_copy, rewrite_copy

__all__ = ["unpacked", "write_snapshot"]

_FILES = re.compile(
    r"[0-9a-f-]{36,45}/(?:ledger/(?:key|purges\.jsonl)|\d{6}-\d{8}T\d{6}Z/(?:manifest\.jsonl|(?P<image>image-000001)))"
)
MOST_SMALL_BYTES = 256 << 20
"""Of a file of a snapshot that is not its image."""


def write_snapshot(
    chain: Chain,
    point: Point,
    ledger: Path,
    out: IO[bytes],
    *,
    memory_limit_bytes: int,
    where: Path | None = None,
) -> int:
    """
    Write a state of a chain as a snapshot, proved; return the bytes of its image.

    It is in clear, also of a chain that is encrypted, which has to be unlocked before: who takes it encrypts it. It is
    made in the folder `where`, else next to the chain; there is to be room for two copies of the database. Raises
    StoreRefused, OSError.
    """
    store = chain.folder.parent
    with scratch(where or store) as folder:
        whole, made = folder / DATABASE, folder / "made" / DATABASE
        made.parent.mkdir()
        chain.assemble(point, whole, whole.with_name(f"{DATABASE}.wal"), yields_disk=True)
        store_id = store_id_of(chain)
        rewrite_copy(whole, made, store_id, point.commit_seq, memory_limit_bytes=memory_limit_bytes)
        whole.unlink()
        prove_copy(made, store_id, point.commit_seq, memory_limit_bytes=memory_limit_bytes)
        told = history_folder(folder, str(store_id), chain.header.get("history_id", ""))
        mark = mark_of_chains(chains_of(store, [], in_brief=True))
        check_mark(ledger, mark)
        size = _write_chain(told / chain_name(folder, point.time), chain, point, made, mark)
        made.unlink()
        copy_ledger(ledger, told / LEDGER, chain.ledger_key)
        sink: Any = _Sink(out)
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            try:
                for path in sorted(path for path in told.rglob("*") if path.is_file()):
                    tar.add(path, str(path.relative_to(folder)), filter=_nobody_s)
            except BaseException:
                sink.is_over = True
                raise
        out.flush()
    return size


class _Sink:
    """Where a tar goes; nothing more once it is broken off: tarfile writes even then, and a reader may be gone."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.is_over = False

    def write(self, data: bytes) -> int:
        return len(data) if self.is_over else self._out.write(data)


def _write_chain(folder: Path, of: Chain, point: Point, database: Path, mark: LedgerMark | None) -> int:
    header = {**of.header, "transaction": point.commit_seq, "time": point.time.isoformat(timespec="seconds")}
    for name in ("format", *OF_CHAIN):
        header.pop(name, None)
    writer = ChainWriter(folder, header)
    writer.ledger = mark
    handle = os.open(database, os.O_RDONLY | os.O_CLOEXEC)
    try:
        image = writer.copy(handle, database.stat().st_size)
        writer.add_image(image, point.commit_seq, point.time_us)
        writer.add_proof(point.commit_seq, point.time_us)
    finally:
        os.close(handle)
        writer.close()
    return image.size


def _nobody_s(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns a file on this host."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


@contextmanager
def unpacked(source: IO[bytes], data_dir: Path, name: str) -> Iterator[Path]:
    """
    Unpack a snapshot into a folder of its own next to `data_dir`, and yield that folder of backups.

    Only the files of a snapshot are taken, by their names; what they hold is proved as of every backup. Raises
    BackupDamaged, which speaks of it as `name`; OSError.
    """
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    with scratch(data_dir.parent) as folder:
        try:
            _unpack(source, folder)
        except (tarfile.TarError, EOFError) as error:
            raise BackupDamaged(
                f"{name} is no whole snapshot of memoryd ({error}); unpack or decrypt it first, if it was packed"
            ) from None
        if not list(folder.glob(f"*/*/{MANIFEST}")):
            raise BackupDamaged(f"{name} is no snapshot of memoryd: it holds no {MANIFEST}")
        try:
            yield folder
        except BackupDamaged as damage:
            raise BackupDamaged(str(damage).replace(str(folder), name)) from None


def _unpack(source: IO[bytes], folder: Path) -> None:
    with tarfile.open(fileobj=source, mode="r|") as tar:
        for member in tar:
            if member.isdir():
                continue
            named = _FILES.fullmatch(member.name)
            if named is None or not member.isfile():
                raise tarfile.TarError(f"{member.name!r} is no file of a snapshot")
            if not named["image"] and member.size > MOST_SMALL_BYTES:
                raise tarfile.TarError(f"{member.name!r} has {member.size} bytes")
            path = folder / member.name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            content: Any = tar.extractfile(member)
            with path.open("xb") as target:
                path.chmod(0o600)
                shutil.copyfileobj(content, target, 1 << 20)
