"""A parser of arguments whose errors say what helps."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

__all__ = ["Parser", "WrongUsage"]


class WrongUsage(Exception):
    """The words of a command make no sense; what is wrong, in one line."""

    def __init__(self, program: str, message: str) -> None:
        super().__init__(f"{message}; see {program} --help")
        self.program = program


class Parser(argparse.ArgumentParser):
    """Says how to get help where argparse only says what was wrong, and which command may have been meant."""

    def error(self, message: str) -> NoReturn:
        """Raise WrongUsage, for the command to tell."""
        raise WrongUsage(self.prog, _told(message))


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
