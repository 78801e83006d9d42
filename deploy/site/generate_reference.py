"""
Write docs/reference/ from the contract, the table of keys, the parsers and the client, and the list of decisions.

    python deploy/site/generate_reference.py            writes the pages
    python deploy/site/generate_reference.py --check    fails if one of them is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

from command_pages import command_pages
from contract_pages import contract_pages
from decision_page import decision_page
from key_page import key_page
from markup import made_by
from python_page import python_page

from memoryd.http.door import methods
from memoryd.http.generate_openapi import contract

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[str, str]:
    """Return every page by its path in docs/."""
    over_http = {method.path for method in methods()}
    reference = {**contract_pages(contract(), "memoryd.v1", over_http), **command_pages()}
    reference |= {"keys.md": key_page(), "python.md": python_page()}
    made = {f"reference/{name}": page for name, page in reference.items()}
    made["decisions/index.md"] = decision_page(DOCS / "decisions")
    return {name: f"{page.rstrip()}\n\n{made_by('reference')}\n" for name, page in made.items()}


def main() -> None:
    """Write the pages, or check them."""
    wanted = pages()
    paths = [*DOCS.glob("reference/*.md"), *DOCS.glob("decisions/index.md")]
    there = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in paths}
    if "--check" in sys.argv[1:]:
        stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        if stale:
            raise SystemExit(f"docs: {', '.join(stale)}: stale; run make reference")
        return
    (DOCS / "reference").mkdir(exist_ok=True)
    for name in there.keys() - wanted:
        (DOCS / name).unlink()
    for name, page in wanted.items():
        (DOCS / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
