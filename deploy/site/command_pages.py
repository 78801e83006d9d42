"""The reference of the commands, from their parsers; it is the same with every version of Python."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import memory_cli.parser
import memory_mcp.parser
from markup import anchor, cell, table, text

import memoryd.cli.main

__all__ = ["command_pages"]

COMMANDS: tuple[tuple[Callable[[], argparse.ArgumentParser], str], ...] = (
    (memory_cli.parser.make_parser, "users of the command in a sandbox, and for authors of scripts"),
    (memoryd.cli.main.make_parser, "operators, and for authors of agent platforms"),
    (memory_mcp.parser.make_parser, "users of a host of the Model Context Protocol"),
)


def command_pages() -> dict[str, str]:
    """Return a page a command, by its name."""
    pages = {}
    for make_parser, readers in COMMANDS:
        parser = make_parser()
        lines = [f"# The command {parser.prog}", "", f"*Reference for {readers}.*", "", *_command(parser, 1)]
        pages[f"{parser.prog}.md"] = "\n".join(lines)
    return pages


def _command(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    """Yield what a command says of itself, then its commands."""
    if depth > 1:
        yield from (f"{'#' * depth} {parser.prog}", "")
    yield from _prose(parser.description)
    yield from ("```text", _usage(parser), "```", "")
    below = next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)  # noqa: SLF001
    if below is not None:
        told = {one.dest: one.help or "" for one in below._choices_actions}  # noqa: SLF001
        rows = ((f"[`{one.prog}`](#{anchor(one.prog)})", cell(told[name])) for name, one in below.choices.items())
        yield from table(("command", "what it does"), rows)
    for group in parser._action_groups:  # noqa: SLF001  argparse tells them nowhere else
        rows = [_row(parser, action) for action in group._group_actions if _is_told(action)]  # noqa: SLF001
        if rows:
            yield from (f"**{(group.title or '').capitalize()}**", "", *table(("name", "meaning"), rows))
    yield from _prose(parser.epilog)
    for one in below.choices.values() if below is not None else ():
        yield from _command(one, depth + 1)


def _is_told(action: argparse.Action) -> bool:
    is_hidden = action.dest == "help" or action.help is argparse.SUPPRESS
    return not is_hidden and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return how a command is called: options that exclude each other, those that it needs, arguments."""
    actions = [action for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    words = [parser.prog]
    grouped = [group._group_actions for group in parser._mutually_exclusive_groups]  # noqa: SLF001
    if any(action.option_strings and not action.required for action in actions):
        words.append("[options]")
    words += [f"[{' | '.join(_named(parser, one, 'longest') for one in group)}]" for group in grouped]
    needed = [one for one in actions if one.option_strings and one.required]
    words += [_named(parser, one, "longest") for one in needed]
    words += [_values(parser, one) for one in actions if not one.option_strings]
    return " ".join(words)


def _values(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the values of an option or an argument, as its usage names them."""
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        return f"{action.metavar or 'COMMAND'} …"
    name = action.dest.upper() if action.option_strings else action.dest
    formatter = parser._get_formatter()  # noqa: SLF001
    return formatter._format_args(action, name)  # noqa: SLF001


def _named(parser: argparse.ArgumentParser, action: argparse.Action, which: str = "all") -> str:
    values = f" {_values(parser, action)}" if action.nargs != 0 else ""
    options = action.option_strings if which == "all" else action.option_strings[-1:]
    return ", ".join(options) + values


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str]:
    formatter = parser._get_formatter()  # noqa: SLF001
    said = formatter._expand_help(action) if action.help else ""  # noqa: SLF001
    named = _named(parser, action) if action.option_strings else _values(parser, action)
    return f"`{named}`".replace("|", "\\|"), cell(said)


def _prose(said: str | None) -> Iterator[str]:
    """Yield a text of a parser: its paragraphs as prose, and what is laid out in lines as it is."""
    if not said:
        return
    for part in (said[0].upper() + said[1:]).strip("\n").split("\n\n"):
        lines = part.split("\n")
        if any(line.startswith("  ") for line in lines):
            yield from ("```text", *lines, "```", "")
        else:
            yield from (text(" ".join(lines)), "")
