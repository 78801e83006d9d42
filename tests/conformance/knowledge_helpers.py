"""What the tests of one subject share."""

from __future__ import annotations

from memory_client import (
    Source,
)

EXTRACTED = Source(channel="extraction", message_ids=("m1",))
