"""Why the daemon does not start: told to the operator in one line, with the exit code that tells the supervisor."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["EXIT_LATER", "EXIT_REFUSED", "Refusal"]

EXIT_LATER = 75  # EX_TEMPFAIL of sysexits(3): starting again later may help
EXIT_REFUSED = 78  # EX_CONFIG of sysexits(3): starting again would not help


class Refusal(Exception):
    """It cannot start as things are; the message says why and what to do."""

    exit_code: ClassVar[int] = EXIT_REFUSED
