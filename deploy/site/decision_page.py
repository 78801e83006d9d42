"""The list of decisions, from their titles."""

from __future__ import annotations

from pathlib import Path

from markup import table

__all__ = ["decision_page"]


def decision_page(folder: Path) -> str:
    """Return the page that lists the decisions of a folder."""
    rows = []
    for path in sorted(folder.glob("0*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number, _, rest = title.partition(". ")
        rows.append((number, f"[{rest}]({path.name})"))
    lines = [
        "# Decisions",
        "",
        "*Explanation for developers of memoryd.*",
        "",
        "What was decided, what was measured or tried for it, and what was not taken.",
        "",
        *table(("no.", "decision"), rows),
    ]
    return "\n".join(lines)
