"""
Write docs/reference/ from the contract, the table of keys and the parsers, so that it cannot lag behind them.

    python deploy/site/generate_reference.py            writes the pages
    python deploy/site/generate_reference.py --check    fails if one of them is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

from command_pages import command_pages
from contract_pages import contract_pages
from key_page import key_page
from markdown import made_by

from memoryd.http.door import FILES
from memoryd.http.generate_openapi import contract

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
BY_HAND = {"python.md"}  # names what the site reads from docstrings


def pages() -> dict[str, str]:
    """Return every page by its name."""
    over_http = [file.DESCRIPTOR.name for file in FILES]
    made = {**contract_pages(contract(), "memoryd.v1", over_http), **command_pages(), "keys.md": key_page()}
    return {name: f"{page.rstrip()}\n\n{made_by('reference')}\n" for name, page in made.items()}


def main() -> None:
    """Write the pages, or check them."""
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md") if path.name not in BY_HAND}
    if "--check" in sys.argv[1:]:
        stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        if stale:
            raise SystemExit(f"docs/reference: {', '.join(stale)}: stale; run make reference")
        return
    FOLDER.mkdir(exist_ok=True)
    for name in there.keys() - wanted:
        (FOLDER / name).unlink()
    for name, page in wanted.items():
        (FOLDER / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
