"""A parser of arguments whose errors say what helps."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["Parser", "Version", "WrongUsage", "refuse_early"]


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

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return what is read; of an option that is not there the command says which is near."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            from difflib import get_close_matches

            parser = _command_of(self, found)
            options = [*parser._option_string_actions, *self._option_string_actions]  # noqa: SLF001  its own class
            near = get_close_matches(unknown[0].partition("=")[0], options, n=1, cutoff=LIKE)
            meant = f"; did you mean {near[0]}" if near else ""
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return found


class Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the name of the command and the version, and exit."""
        from importlib.metadata import version

        parser.exit(0, f"{parser.prog} {version('memoryd')}\n")


LIKE = 0.75  # of an option that may have been meant: --limt and --limit are .92 alike, --bogus and --about .71
_CHOICE = re.compile(r"argument COMMAND: invalid choice: '(?P<said>[^']*)' \(choose from (?P<known>.*)\)")


def _command_of(parser: argparse.ArgumentParser, namespace: argparse.Namespace) -> argparse.ArgumentParser:
    """Return the parser of the command that was chosen, or of a command of it."""
    for action in parser._actions:  # noqa: SLF001  argparse tells them nowhere else
        chosen = getattr(namespace, action.dest, None)
        if isinstance(action.choices, dict) and chosen in action.choices:
            return _command_of(action.choices[chosen], namespace)
    return parser


def _told(message: str) -> str:
    """Return what was wrong; of a command that is not there the nearest ones."""
    match = _CHOICE.fullmatch(message)
    if match is None:
        return message
    from difflib import get_close_matches

    near = get_close_matches(match["said"], re.findall(r"[\w-]+", match["known"]), n=2)
    meant = f"; did you mean {' or '.join(near)}" if near else f"; there are {match['known'].replace(chr(39), '')}"
    return f"there is no command {match['said']!r}{meant}"


def refuse_early(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """
    End with an error if an option is given an empty value, as by a variable of the shell that is not set.

    Also where an option stands before the command, so that its value would be taken for one.
    """
    flags = _flags_of(parser)
    of_all = {option for action in parser._actions for option in action.option_strings}  # noqa: SLF001  as above
    if argv and argv[0].startswith("--") and argv[0] != "--" and argv[0] not in of_all:
        parser.error(f"options stand behind the command: {parser.prog} COMMAND {argv[0]} …")
    for word, following in zip(argv, [*argv, "-"][1:], strict=True):
        if word == "--":
            return
        if word in flags:
            continue
        option, separator, value = word.partition("=")
        empty = not value.strip() if separator else not following.strip()
        if option.startswith("--") and empty:
            parser.error(f"what follows {option} is empty; leave the option out, or give it a value")


def _flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options that take no value, of a parser and of its commands."""
    flags: set[str] = set()
    for action in parser._actions:  # noqa: SLF001  argparse tells them nowhere else
        if isinstance(action.choices, dict):
            flags.update(*(_flags_of(one) for one in action.choices.values()))
        elif action.nargs == 0:
            flags.update(action.option_strings)
    return flags
