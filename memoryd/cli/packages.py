"""Whether the packages that are installed are those that this memoryd was tested with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import memoryd

__all__ = ["Difference", "differing_packages"]

LOCK = "requirements.lock"  # of a wheel next to the package's modules, of a checkout in deploy/
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


class Difference(NamedTuple):
    """A package that is not the one of the lock."""

    name: str
    installed: str
    """Its version; empty: it is not installed."""
    locked: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.name} {self.installed or 'is not installed'} (tested with {self.locked})"


def differing_packages() -> list[Difference]:
    """Return the packages of the server whose version is not the locked one; OSError where the lock is missing."""
    package = Path(memoryd.__file__).parent
    lock = package / LOCK
    text = (lock if lock.exists() else package.parent / "deploy" / LOCK).read_text()
    return list(_differing(text))


def _differing(lock: str) -> Iterator[Difference]:
    for name, locked in _PINNED.findall(lock):
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = ""
        if installed != locked:
            yield Difference(name, installed, locked)
