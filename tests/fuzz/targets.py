"""What is fuzzed: each function takes bytes, and fails on any other error than the one that its reader promises."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path

from memoryd.audit.reading import read_audit, sighting_of
from memoryd.backup.chain import BackupDamaged, Chain
from memoryd.daemon.config_file import read_config
from memoryd.domain.retrieval.page_token import page_token_after, read_page_token
from memoryd.domain.transfer.records import read_record, record_line
from memoryd.errors import InvalidArgument, PageTokenInvalid, Unauthenticated
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.questions import signs_of, wanted_of
from memoryd.knowledge.read_statement import Reader
from memoryd.knowledge.secrets import SecretDetector
from memoryd.model.token import parse_token
from memoryd.store.ledger import check_ledger
from memoryd.store.refusal import StoreRefused

__all__ = ["TARGETS"]

TODAY = date(2026, 11, 29)
SECRET = b"s" * 32
IMAGE, LOG = b"i" * 12_288, b"l" * 1_000
"""The files that the manifest `whole` of the corpus names, so that what reads them is reached."""


@cache
def _folder() -> Path:
    """Return a folder for the files of a target."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _secrets() -> SecretDetector:
    return SecretDetector()


def capability_token(data: bytes) -> None:
    """A token that is one reads back as the same text."""
    with suppress(Unauthenticated):
        token = parse_token(data.decode("latin-1"))
        assert parse_token(token.text()) == token


def page_token(data: bytes) -> None:
    """What was signed is read as the same place again, and all else is refused."""
    with suppress(PageTokenInvalid):
        last = read_page_token(data.decode("utf-8", "ignore"), SECRET, b"query")
        assert read_page_token(page_token_after(last, SECRET, b"query"), SECRET, b"query") == last


def configuration(data: bytes) -> None:
    """Whatever a file holds, the faults are told, and the values that are right are used."""
    path = _folder() / "memoryd.toml"
    path.write_bytes(data)
    config, faults = read_config(path, {})
    assert config.entries()
    assert all(isinstance(fault, str) for fault in faults)


def import_line(data: bytes) -> None:
    """A record that is read is written as what reads as the same record."""
    with suppress(InvalidArgument):
        record = read_record(data.decode("utf-8", "replace"))
        assert read_record(record_line(record)) == record


def text(data: bytes) -> None:
    """Any text is read for days, questions, statements and secrets; what is masked is masked for good."""
    said = data.decode("utf-8", "replace")
    for days in days_named(said, TODAY, (2025, 2026)):
        assert days.first <= days.last
    signs_of(said)
    wanted_of(said)
    assert Reader().read(said).statement is not None
    masked = _secrets().mask(said)
    assert _secrets().mask(masked) == masked


def backup(data: bytes) -> None:
    """A manifest of any lines, with right checksums, is a chain or is refused, and so is what it names."""
    path = _folder() / "manifest.jsonl"
    path.write_bytes(_checked(data))
    path.with_name("image-000001").write_bytes(IMAGE)
    path.with_name("log-000001").write_bytes(LOG)
    with suppress(BackupDamaged, OSError):  # a size that no file can have is told by the system
        chain = Chain.read(path.parent)
        for _ in chain.check():
            pass
        point = chain.point()
        if point is not None:
            chain.assemble(point, _folder() / "database", _folder() / "log")


def ledger(data: bytes) -> None:
    """A ledger of any lines, with right checksums, is read or refused."""
    (_folder() / "key").write_bytes(b"k" * 32)
    (_folder() / "purges.jsonl").write_bytes(_checked(data))
    with suppress(StoreRefused):
        assert check_ledger(_folder(), "store") > 0


def audit(data: bytes) -> None:
    """Whatever an audit log holds, its whole records are read."""
    path = _folder() / "audit.jsonl"
    path.write_bytes(data)
    for record in read_audit(path):
        assert isinstance(record, dict)
    sighting_of(path, "a" * 26)


def request(data: bytes) -> None:
    """The bytes of any request, for any method, are answered or refused, and never with INTERNAL."""
    from tests.fuzz.gated import gated  # here, as it builds a daemon's inside

    name, _, raw = data.partition(b"\n")
    gated().ask(name.decode("latin-1"), raw)


def _checked(data: bytes) -> bytes:
    """Return lines with their checksums, so that what is behind these is reached; one after a `!` has none."""
    lines = []
    for line in data.split(b"\n"):
        body = line.removesuffix(b"}")
        checked = body + b',"crc":' + str(zlib.crc32(body)).encode() + b"}"
        lines.append(checked if body and not line.startswith(b"!") else line.removeprefix(b"!"))
    return b"\n".join(lines)


TARGETS: dict[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (
        request, capability_token, page_token, configuration, import_line, text, backup, ledger, audit,
    )
}  # fmt: skip
