"""What the command memory-mcp understands."""

from __future__ import annotations

import argparse
from typing import Any

from memory_cli.completion import SHELLS
from memory_cli.helpful_parser import Parser, Version

__all__ = ["make_parser"]

HOSTS = ("claude", "cursor", "vscode", "codex")

ABOUT = """\
Serves the memory of one user to a host of the Model Context Protocol, on
standard input and output. Whose memory it is, the socket or the token says.

  memory-mcp config claude        what to put into the host's configuration
  memory-mcp http                 one server for many agents, each with a token
"""
EXAMPLES = """\
examples:
  memory-mcp --user alice                           on the host's own socket
  MEMORY_ENDPOINT=unix:///run/memory/memory.sock memory-mcp
  MEMORY_TOKEN_FILE=~/.memory-token memory-mcp --endpoint unix:///run/memoryd/shared.sock
  memory-mcp config vscode --user alice > .vscode/mcp.json

environment:
  MEMORY_ENDPOINT, MEMORY_USER_ID, MEMORY_CHAT_ID, MEMORY_AGENT_ID,
  MEMORY_TOKEN_FILE, MEMORY_TLS_CA_FILE   as of the command memory
"""
HTTP_EXAMPLES = """\
examples:
  memory-mcp http --endpoint unix:///run/memoryd/shared.sock
  memory-mcp http --endpoint unix:///run/memoryd/shared.sock --listen unix:/run/user/1000/mcp.sock
"""
CONFIG_EXAMPLES = """\
examples:
  memory-mcp config claude --user alice
  memory-mcp config codex --endpoint unix:///run/memory/memory.sock
  memory-mcp config cursor --url http://127.0.0.1:8765/mcp
"""


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        prog="memory-mcp",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    _identity(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    http = commands.add_parser(
        "http",
        help="serve streamable HTTP on loopback or a Unix socket, with a token in each request",
        description="Serves streamable HTTP. Each request needs a token of memoryd, which says whose memory it is.",
        epilog=HTTP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = "the shared socket, unix:///path, or host:port (MEMORY_ENDPOINT)"
    http.add_argument("--endpoint", help=where, default=argparse.SUPPRESS)
    http.add_argument("--listen", default="127.0.0.1:8765", help="127.0.0.1:PORT or unix:/path (%(default)s)")
    config = commands.add_parser(
        "config",
        help="print what to put into the configuration of a host",
        description="Prints what to put into the configuration of a host of the protocol.",
        epilog=CONFIG_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    config.add_argument("host", choices=HOSTS, help="which host")
    config.add_argument("--url", help="of memory-mcp http; the token comes from MEMORY_TOKEN or is asked for")
    _identity(config, argparse.SUPPRESS)  # what stands before the command counts where this says nothing
    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=SHELLS)
    return parser


def _identity(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add what says whose memory it is, where the socket does not."""
    more: dict[str, Any] = {"metavar": "ID", "default": default}
    where = "unix:///path or host:port (MEMORY_ENDPOINT; unset: the default socket)"
    parser.add_argument("--endpoint", help=where, default=default)
    parser.add_argument("--user", help="whose memory it is: needed on the host's own socket", **more)
    parser.add_argument("--chat", help="the chat, for what is shared in it", **more)
    parser.add_argument("--agent", help="the agent", **more)
