"""A parser of arguments whose errors say what helps."""

from __future__ import annotations

import argparse
import re
from typing import Any

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Says how to get help where argparse only says what was wrong, and which command may have been meant."""

    def error(self, message: str) -> Any:
        """Say what was wrong in one line, and end with exit code 2."""
        self.exit(2, f"{self.prog}: {_told(message)}; see {self.prog} --help\n")


_CHOICE = re.compile(r"argument COMMAND: invalid choice: '(?P<said>[^']*)' \(choose from (?P<known>.*)\)")


def _told(message: str) -> str:
    """Return what was wrong; of a command that is not there the nearest ones."""
    match = _CHOICE.fullmatch(message)
    if match is None:
        return message
    from difflib import get_close_matches

    near = get_close_matches(match["said"], re.findall(r"[\w-]+", match["known"]), n=2)
    meant = f"; did you mean {' or '.join(near)}" if near else f"; there are {match['known'].replace(chr(39), '')}"
    return f"there is no command {match['said']!r}{meant}"
