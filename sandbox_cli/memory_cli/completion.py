"""Completion scripts for bash, zsh and fish, made from the parser so that they cannot lag behind it."""

from __future__ import annotations

import argparse
import shlex

__all__ = ["script"]


def _commands(parser: argparse.ArgumentParser) -> dict[str, list[tuple[str, str]]]:
    """Return command → (option, or value of an argument, and help)."""
    for action in parser._actions:  # noqa: SLF001  argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  as above
            return {
                name: [*_words(sub), *(pair for pairs in _commands(sub).values() for pair in pairs)]
                for name, sub in action.choices.items()
            }
    return {}


def _words(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    return [
        (word, item.help or "")
        for item in parser._actions  # noqa: SLF001  as above
        for word in item.option_strings or item.choices or ()
    ]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script; shell is bash, zsh or fish."""
    commands, prog = _commands(parser), parser.prog
    if shell == "fish":
        lines = [f"complete -c {prog} -n __fish_use_subcommand -f -a {name}" for name in commands]
        for name, options in commands.items():
            for option, text in dict(options).items():
                if not option.startswith("-"):
                    lines.append(f"complete -c {prog} -n '__fish_seen_subcommand_from {name}' -f -a {option}")
                    continue
                flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                lines.append(
                    f"complete -c {prog} -n '__fish_seen_subcommand_from {name}' {flag} -d {shlex.quote(text)}"
                )
        return "\n".join(lines) + "\n"
    cases = "\n".join(
        f"    {name}) words={shlex.quote(' '.join(dict(options)))} ;;" for name, options in commands.items()
    )
    names = " ".join(commands)
    body = f"""_{prog}() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words='' ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words={shlex.quote(names)}
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -F _{prog} {prog}
"""
    return body if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{body}"
