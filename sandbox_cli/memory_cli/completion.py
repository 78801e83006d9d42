"""The completion scripts for bash, zsh and fish, which `make completion` writes from the parsers."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["SHELLS", "script"]

SHELLS = ("bash", "zsh", "fish")


def script(package: str, prog: str, shell: str) -> str:
    """Return the script of a command of a package; shell is bash, zsh or fish."""
    return (files(package) / "completions" / f"{prog}.{shell}").read_text(encoding="utf-8")
