"""Runs the command memory-mcp. Standard output belongs to the protocol: all else goes to standard error."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memory_cli.common import as_typed
from memory_cli.helpful_parser import WrongUsage, refuse_early
from memory_cli.output import one_line

from memory_mcp.parser import make_parser

# The protocol's library takes half a second to import, so only what serves does it.

__all__ = ["main"]

EXIT_USAGE = 2
CARRIED = ("MEMORY_ENDPOINT", "MEMORY_TOKEN_FILE", "MEMORY_TLS_CA_FILE", "MEMORY_TLS_CERTIFICATE_FILE",
           "MEMORY_TLS_KEY_FILE")  # fmt: skip
"""Variables that go into a host's configuration: where the daemon is and which file holds the token, never a token."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors go to standard error in one line."""
    from memoryd.errors import InvalidArgument, MemorydError

    parser = make_parser()
    words = sys.argv[1:] if argv is None else argv
    try:
        if words[:1] and words[0] in {"http", "config", "completion"}:
            refuse_early(parser, words)
        args = parser.parse_args(words)
        return _run(args)
    except WrongUsage as usage:
        return _tell(usage, EXIT_USAGE)
    except InvalidArgument as error:
        return _tell(as_typed(error), EXIT_USAGE)
    except MemorydError as error:
        return _tell(error.message, 1)
    except ModuleNotFoundError as error:
        return _tell(f"{error.name} is not installed: pip install 'memoryd[mcp]'", 1)
    except OSError as error:
        return _tell(f"{error.filename or getattr(args, 'listen', '')}: {error.strerror or error}", 1)
    except KeyboardInterrupt:
        return 130


def _tell(error: object, code: int) -> int:
    print(f"memory-mcp: {one_line(str(error))}", file=sys.stderr)
    return code


def _run(args: argparse.Namespace) -> int:
    from memoryd.errors import InvalidArgument

    if args.command == "completion":
        from memory_cli.completion import script

        print(script("memory_mcp", "memory-mcp", args.shell), end="")
        return 0
    if args.command == "config":
        return _config(args, os.environ)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="memory-mcp: %(message)s")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if args.command == "http":
        if args.user or args.chat or args.agent:
            raise InvalidArgument("over HTTP the token of each request says whose memory it is: leave --user out")
        from memory_client import Credentials

        from memory_mcp.http import serve
        from memoryd.web.listen import Listen

        logging.getLogger("mcp").setLevel(logging.ERROR)  # it logs headers of requests as they come
        serve(Listen.read(args.listen), args.endpoint, Credentials.from_env(os.environ))
        return 0
    return _stdio(args)


def _stdio(args: argparse.Namespace) -> int:
    from memory_client.endpoint import Identity, is_admin, resolve_endpoint

    from memoryd.errors import InvalidArgument

    shows_token = os.environ.get("MEMORY_TOKEN_FILE") or os.environ.get("MEMORY_TOKEN")
    said = Identity.from_env(os.environ, args.agent, args.user, args.chat)
    target = resolve_endpoint(args.endpoint, os.environ)
    if is_admin(target) and not shows_token and not said.user_id:
        raise InvalidArgument(
            f"{target} is the host's own socket, which takes your word for whose memory it is: say --user ID",
            field="user_id",
        )
    import anyio
    from mcp.server.stdio import stdio_server

    from memory_mcp.callers import OneCaller
    from memory_mcp.server import make_server

    server = make_server(OneCaller(endpoint=args.endpoint, user_id=args.user, chat_id=args.chat, agent_id=args.agent))

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
    return 0


def _config(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    from memory_client.endpoint import is_admin, resolve_endpoint

    from memory_mcp.snippets import Entry, snippet

    command = shutil.which(sys.argv[0]) or sys.argv[0]
    carried = {name: _absolute(name, env[name]) for name in CARRIED if env.get(name)}
    if args.endpoint:
        carried["MEMORY_ENDPOINT"] = args.endpoint
    given = {
        "--user": args.user or env.get("MEMORY_USER_ID"),
        "--chat": args.chat or env.get("MEMORY_CHAT_ID"),
        "--agent": args.agent or env.get("MEMORY_AGENT_ID"),
    }
    is_said = args.url or given["--user"] or "MEMORY_TOKEN_FILE" in carried
    if not is_said and is_admin(resolve_endpoint(args.endpoint, env)):
        from memory_cli.main import login_name

        given["--user"] = login_name() or None
    words = [word for option, value in given.items() if value for word in (option, value)]
    entry = Entry(command=str(Path(command).absolute()), arguments=words, environment=carried, url=args.url or "")
    text, place = snippet(args.host, entry)
    print(f"# {place}", file=sys.stderr, flush=True)
    print(text, end="")
    return 0


def _absolute(name: str, value: str) -> str:
    """Return what a host may start from any folder: the whole path of a file."""
    return str(Path(value).expanduser().absolute()) if name.endswith("_FILE") else value


def run() -> None:
    """Run the command as a process of its own."""
    sys.exit(main())


if __name__ == "__main__":
    run()
