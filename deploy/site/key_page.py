"""The reference of the configuration, from the table of keys."""

from __future__ import annotations

import json

from markup import cell, table

from memoryd.daemon.config import Config

__all__ = ["key_page"]


def key_page() -> str:
    """Return the page of all keys."""
    lines = [
        "# Keys of the configuration",
        "",
        "*Reference for operators.*",
        "",
        "Where the file is, and how it is read, is told in [Configuration](../configuration.md).",
        "Each key can also be set by the environment: `search.floor` by `MEMORYD_SEARCH_FLOOR`.",
        "",
    ]
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    for key in Config().entries():
        default = json.dumps(key.default)
        sections.setdefault(key.section, []).append(
            (f"`{key.section}.{key.name}`", f"`{default}`", key.unit, key.meaning)
        )
    for section, rows in sections.items():
        lines += [
            f"## {section}",
            "",
            *table(("key", "default", "unit", "meaning"), ((*row[:3], cell(row[3])) for row in rows)),
        ]
    return "\n".join(lines)
