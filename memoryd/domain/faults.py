"""Faults in reading or judging a text: told and counted, and never in the way of storing it or of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memoryd.errors import MemorydError

__all__ = ["Faults"]


class Faults:
    """Counts them; each is told by its step, the type of the error and its place, without a word of the statement."""

    def __init__(self, tell: Callable[[str, str, str], None] = lambda _step, _error, _place: None) -> None:
        """`tell` is called with the step, the type of the error, and the file and line where it was raised."""
        self._tell = tell
        self.count = 0

    @contextmanager
    def spared(self, step: str) -> Iterator[None]:
        """Go on after a fault in a step; what the contract refuses is no fault and goes through."""
        try:
            yield
        except MemorydError:
            raise
        except Exception as error:  # noqa: BLE001  a text is stored or answered, whatever reading it has come to
            self.count += 1
            self._tell(step, type(error).__name__, _place(error))


def _place(error: Exception) -> str:
    """Return where an error was raised: file and line; its message may hold content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
