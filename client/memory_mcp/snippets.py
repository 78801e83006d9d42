"""What to put into the configuration of a host of the protocol, so that it starts memory-mcp or calls it over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["HOSTS", "Entry", "snippet", "toml_text"]

TOKEN = "MEMORY_TOKEN"  # noqa: S105  the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a host reaches the server: a command with its environment, or a URL."""

    command: str = ""
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def started(self) -> dict[str, Any]:
        """The entry of a server that the host starts."""
        entry: dict[str, Any] = {"command": self.command, "args": [*self.arguments]}
        return entry | ({"env": dict(self.environment)} if self.environment else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Host:
    """One host: where its configuration is, and how it is written."""

    place: str
    place_of_url: str = ""
    """Where it is for a server that is called by a URL; empty: the same."""
    write: Callable[[Entry], str]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _claude(entry: Entry) -> str:
    header = {"Authorization": f"Bearer ${{{TOKEN}}}"}
    called = {"type": "http", "url": entry.url, "headers": header}
    return _json({"mcpServers": {"memory": called if entry.url else entry.started}})


def _cursor(entry: Entry) -> str:
    called = {"url": entry.url, "headers": {"Authorization": f"Bearer ${{env:{TOKEN}}}"}}
    return _json({"mcpServers": {"memory": called if entry.url else entry.started}})


def _vscode(entry: Entry) -> str:
    if not entry.url:
        return _json({"servers": {"memory": {"type": "stdio", **entry.started}}})
    asked = {"type": "promptString", "id": "memory-token", "description": "token of memoryd", "password": True}
    header = {"Authorization": "Bearer ${input:memory-token}"}
    return _json({"inputs": [asked], "servers": {"memory": {"type": "http", "url": entry.url, "headers": header}}})


def _codex(entry: Entry) -> str:
    lines = ["[mcp_servers.memory]"]
    if entry.url:
        lines += [f"url = {toml_text(entry.url)}", f"bearer_token_env_var = {toml_text(TOKEN)}"]
        return "\n".join(lines) + "\n"
    arguments = ", ".join(map(toml_text, entry.arguments))
    lines += [f"command = {toml_text(entry.command)}", f"args = [{arguments}]"]
    if entry.environment:
        pairs = ", ".join(f"{name} = {toml_text(value)}" for name, value in entry.environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def toml_text(text: str) -> str:
    """Return a text as a basic string of TOML, whose escapes are those of JSON but for U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


HOSTS = {
    "claude": _Host(
        place="Claude Desktop: claude_desktop_config.json; Claude Code: .mcp.json",
        place_of_url="Claude Code: .mcp.json",
        write=_claude,
    ),
    "cursor": _Host(place="~/.cursor/mcp.json, or .cursor/mcp.json of a project", write=_cursor),
    "vscode": _Host(place=".vscode/mcp.json of a project", write=_vscode),
    "codex": _Host(place="~/.codex/config.toml", write=_codex),
}


def snippet(host: str, entry: Entry) -> tuple[str, str]:
    """Return the text for a host's configuration, and where that is."""
    chosen = HOSTS[host]
    return chosen.write(entry), (entry.url and chosen.place_of_url) or chosen.place
