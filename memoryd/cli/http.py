"""What `memoryd http` does: serve the contract over HTTP, in JSON and binary, for callers that have a token."""

from __future__ import annotations

import argparse
import os
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoryd.cli.places import settle
from memoryd.errors import InvalidArgument, MemorydError, Unauthenticated
from memoryd.web.listen import Listen
from memoryd.web.names import names_of

__all__ = ["add_http_command"]

EXAMPLES = """examples:
  memoryd http
  memoryd http --listen unix:/run/memoryd/http.sock
  memoryd http --listen 0.0.0.0:8443 --host memory.example.org --tls-certificate-file cert.pem --tls-key-file key.pem
  memoryd http --openapi > openapi.json

  (umask 077; echo "Authorization: Bearer $(memoryd token issue --user alice --allow search,add)" > header)
  curl -H @header -H "Content-Type: application/json" -d '{"query": "What should I avoid eating?"}' \\
    http://127.0.0.1:8766/memoryd.v1.MemoryService/SearchMemories"""


def add_http_command(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to a parser's; it sets `run` to what carries it out."""
    parser = commands.add_parser(
        "http",
        parents=[common],
        help="serve the contract over HTTP, in JSON and binary (the Connect protocol)",
        description="Serves the methods that a sandbox may call over HTTP. Each request needs a token of memoryd,"
        " which the daemon checks as it does on its shared socket.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--listen", metavar="WHERE", default="127.0.0.1:8766",
        help="127.0.0.1:PORT or unix:/path; with TLS any address (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--endpoint", help="the shared socket, or host:port (shared.socket of the configuration)")
    parser.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which it is reached: with TLS, or behind a proxy that ends TLS (repeatable)",
    )
    parser.add_argument("--tls-certificate-file", metavar="FILE", default="", help="the certificate, for TLS")
    parser.add_argument("--tls-key-file", metavar="FILE", default="", help="its key")
    parser.add_argument("--openapi", action="store_true", help="print what is served as OpenAPI, and end")
    parser.set_defaults(run=_http)


def _http(args: argparse.Namespace) -> int:
    if args.openapi:
        from importlib.resources import files

        print((files("memoryd.http") / "openapi.json").read_text(encoding="utf-8"), end="")
        return 0
    try:
        from memoryd.http.door import Door
        from memoryd.web.server import run
    except ModuleNotFoundError as error:
        raise InvalidArgument(f"{error.name} is not installed: pip install 'memoryd[server,http]'") from None
    import grpc
    from memory_client import Credentials
    from memory_client.credentials import channel_credentials
    from memory_client.endpoint import CHANNEL_OPTIONS

    secured = _files_of_tls(args)
    listen = Listen.read(args.listen, to_others=bool(secured))
    target = _target(args)
    tls = channel_credentials(target, Credentials.from_env(os.environ))
    options = [*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]  # a connection for each channel

    def connect() -> grpc.aio.Channel:
        if tls is None:
            return grpc.aio.insecure_channel(target, options=options)
        return grpc.aio.secure_channel(target, tls, options=options)

    own = [] if secured and args.host else sorted(names_of(listen.host))
    names: Sequence[str] = [] if listen.path else [*args.host, *own]
    schemes = ("https",) if secured else ("http", "https") if args.host else ("http",)
    with listen.opened() as opened:
        print(f"memoryd: {listen.url_of(opened, scheme=schemes[0])}", file=sys.stderr, flush=True)
        run(Door(connect, target, names, schemes), opened, **secured)
    return 0


def _files_of_tls(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the server needs for TLS; nothing without it."""
    given = (args.tls_certificate_file, args.tls_key_file)
    if not any(given):
        return {}
    if not all(given):
        raise InvalidArgument("TLS needs --tls-certificate-file and --tls-key-file", field="tls_key_file")
    for path in given:
        with Path(path).open("rb"):  # OSError says which
            pass
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*given)
    except ssl.SSLError:
        raise InvalidArgument(
            f"{given[0]} is no certificate in PEM, or {given[1]} is not its key in PEM, without a password",
            field="tls_certificate_file",
        ) from None
    return {"ssl_certfile": given[0], "ssl_keyfile": given[1]}


def _target(args: argparse.Namespace) -> str:
    """Return where the daemon takes tokens; InvalidArgument for a socket that lets callers in without."""
    from memory_client import Credentials, MemoryClient
    from memory_client.endpoint import resolve_endpoint

    named = args.endpoint or _shared(args)
    target = resolve_endpoint(named, os.environ)
    shown = Credentials(ca_file=os.environ.get("MEMORY_TLS_CA_FILE", ""))
    try:
        with MemoryClient(target, user_id="", chat_id="", agent_id="", credentials=shown, wait_for_ready=False) as asks:
            asks.whoami()
    except Unauthenticated:
        return target  # as it should be
    except MemorydError:
        return target  # the daemon is away, and may come back: each call says so
    raise InvalidArgument(
        f"{target} lets callers in without a token; name the shared socket or host:port with --endpoint",
        field="endpoint",
    )


def _shared(args: argparse.Namespace) -> str:
    config, _ = settle(args)
    if not config.shared.socket:
        raise InvalidArgument(
            'there is no shared socket: set [shared] socket = "/run/memoryd/shared.sock" and restart memoryd, or name'
            " another door with --endpoint",
            field="endpoint",
        )
    return f"unix://{Path(config.shared.socket).absolute()}"
