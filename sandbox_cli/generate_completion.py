"""
Write the completion scripts of the commands, with shtab, from their parsers, so that they cannot lag behind them.

    python sandbox_cli/generate_completion.py            writes …/completions/
    python sandbox_cli/generate_completion.py --check    fails if one of them is stale
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import memory_cli
import memory_cli.parser
import memory_mcp.parser
import shtab

import memoryd.cli
import memoryd.cli.main

SHELLS = ("bash", "zsh", "fish")
COMMANDS = (
    (memory_cli.parser.make_parser, Path(memory_cli.__file__).parent / "completions"),
    (memory_mcp.parser.make_parser, Path(memory_mcp.__file__).parent / "completions"),
    (memoryd.cli.main.make_parser, Path(memoryd.cli.__file__).parent / "completions"),
)


def script_of(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script of a shell for a command."""
    text = shtab.complete(parser, shell)
    return "\n".join(line.rstrip() for line in re.sub(r"\n{3,}", "\n\n", text).strip().split("\n")) + "\n"


def main() -> int:
    """Write the files, or check them; return the exit code."""
    stale = []
    for make_parser, folder in COMMANDS:
        for shell in SHELLS:
            parser = make_parser()
            path, text = folder / f"{parser.prog}.{shell}", script_of(parser, shell)
            if "--check" not in sys.argv[1:]:
                folder.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
    if stale:
        print(f"{', '.join(stale)} are stale: run make completion", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
