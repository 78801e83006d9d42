"""Readers that go on side by side, and a moment in which there are none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ReadGate"]


class ReadGate:
    """Lets readers in, until it is shut; `epoch` counts how often it was opened again."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._shut = False
        self.epoch = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read something; waits while the gate is shut."""
        with self._condition:
            while self._shut:
                self._condition.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    def shut(self, patience_s: float) -> bool:
        """Let no one in and wait for those who read; return False, open again, if they take longer."""
        end = time.monotonic() + patience_s
        with self._condition:
            self._shut = True
            while self._readers:
                left = end - time.monotonic()
                if left <= 0:
                    self._shut = False
                    self._condition.notify_all()
                    return False
                self._condition.wait(left)
            return True

    def open(self) -> None:
        """Let readers in again, who need new cursors."""
        with self._condition:
            self.epoch += 1
            self._shut = False
            self._condition.notify_all()
