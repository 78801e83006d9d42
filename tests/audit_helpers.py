"""What the tests of one subject share."""

from __future__ import annotations

from memoryd.audit.reading import read_audit


def records(path, **options):
    return list(read_audit(path, **options))
