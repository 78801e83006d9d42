"""Runs a command: the identity from the environment, the work by the client, the outcome as an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from memory_cli.common import Declined, Partly, Usage, as_typed
from memory_cli.helpful_parser import WrongUsage, refuse_early
from memory_cli.memories import add, confirm, context, correct, delete, get, list_memories, profile, search, undelete
from memory_cli.notes import note, notes
from memory_cli.output import as_json, error_json, moment, one_line, size
from memory_cli.parser import make_parser
from memory_cli.people import forget, people, person
from memory_cli.provenance import history, why
from memory_cli.talk import log, summary, threads, working_memory
from memory_cli.update import update

# The client, and with it gRPC, is imported once a command needs it: --help and completion stay instant.

__all__ = ["main", "run"]

EXIT_CODES = {
    "INVALID_ARGUMENT": 2,
    "NOT_FOUND": 3,
    "PERMISSION_DENIED": 4,
    "UNAUTHENTICATED": 4,
    "RESOURCE_EXHAUSTED": 5,
    "UNAVAILABLE": 6,
    "DEADLINE_EXCEEDED": 6,
    "ABORTED": 7,
    "DATA_LOSS": 8,
}
DECLINED = 4


def _client(args: argparse.Namespace) -> Any:
    from memory_client import MemoryClient
    from memory_client.endpoint import is_admin

    client = MemoryClient(
        args.endpoint,
        user_id="" if args.no_user else args.user,
        chat_id=args.chat,
        agent_id=args.agent,
        timeout_s=args.timeout,
        wait_for_ready=False,
    )
    identity = client.identity
    token = os.environ.get("MEMORY_TOKEN_FILE") or os.environ.get("MEMORY_TOKEN")
    if args.no_user and (token or not is_admin(client.target)):
        client.close()
        raise Usage("--no-user is for the host's admin socket; here the daemon knows who you ask for: memory whoami")
    if is_admin(client.target) and not identity.user_id and not token and not args.no_user:
        client = client.acting_for(user_id=login_name(), chat_id=identity.chat_id, agent_id=identity.agent_id)
    return client


def login_name() -> str:
    """Return the login name; empty where there is none, as in some containers."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _stats(client: Any, args: argparse.Namespace) -> None:
    stats = client.stats()
    if args.json:
        print(as_json(stats))
        return
    for item in stats.counts:
        print(
            f"{item.count:>8}  {item.state.value:<11} {item.kind.value:<11} {'shared' if item.shared else 'personal'}"
        )
    print(f"{sum(item.count for item in stats.counts):>8}  in all, {size(stats.content_bytes)} of text")


def _amount(name: str, value: float) -> str:
    return size(int(value)) if name.endswith("_bytes") else f"{value:g}" if value % 1 else f"{int(value)}"


def _whoami(client: Any, args: argparse.Namespace) -> None:
    from memoryd.model.grant import permission_names

    who = client.whoami()
    if args.json:
        print(as_json({"endpoint": client.target, **{item.name: getattr(who, item.name) for item in fields(who)}}))
        return
    used = {
        "writes_per_day": who.usage.writes_today,
        "stored_memories": who.usage.stored_memories,
        "stored_bytes": who.usage.stored_bytes,
    }
    quota = {item.name: getattr(who.quota, item.name) for item in fields(who.quota)}
    limits = [
        f"{name} {_amount(name, used[name])} of {_amount(name, limit)}"
        if name in used
        else f"{name} {_amount(name, limit)}"
        for name, limit in quota.items()
        if limit
    ]
    rows = {
        "endpoint": client.target,
        "door": who.door.value,
        "agent_id": who.agent_id,
        "user_id": who.user_id,
        "chat_id": who.chat_id,
        "chat_ids": ", ".join(who.chat_ids),
        "may": ", ".join(permission_names(who.permissions)) or "nothing",
        "grant_id": who.grant_id,
        "until": who.expire_time and moment(who.expire_time),
        "limits": ", ".join(limits),
        "note": "this agent is switched off: nothing is stored" if who.agent_disabled else "",
    }
    for name, value in rows.items():
        if value or name in {"user_id", "chat_id"}:
            print(f"{name + ':':<10} {one_line(value) if value else '-'}")


COMMANDS: dict[str, Callable[[Any, argparse.Namespace], None]] = {
    "add": add,
    "search": search,
    "list": list_memories,
    "get": get,
    "delete": delete,
    "undelete": undelete,
    "correct": correct,
    "confirm": confirm,
    "update": update,
    "history": history,
    "why": why,
    "people": people,
    "person": person,
    "forget": forget,
    "threads": threads,
    "log": log,
    "summary": summary,
    "working-memory": working_memory,
    "note": note,
    "notes": notes,
    "context": context,
    "profile": profile,
    "stats": _stats,
    "whoami": _whoami,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors go to standard error in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    words = sys.argv[1:] if argv is None else argv
    parser = make_parser(*words[:1])
    try:
        refuse_early(parser, words)
        args = parser.parse_args(words)
    except WrongUsage as usage:
        _tell(usage, in_json="--json" in words, code="INVALID_ARGUMENT", reason="WRONG_USAGE", program=usage.program)
        return EXIT_CODES["INVALID_ARGUMENT"]
    code = 0
    try:
        code = _run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()  # the reader has gone; that is no error
    except OSError as error:
        _discard_output()
        print(f"memory: cannot write: {error.strerror}", file=sys.stderr)
        return code or 1
    except KeyboardInterrupt:
        return 130
    return code


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not stumble over it at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: argparse.Namespace) -> int:
    if args.command == "completion":
        from memory_cli.completion import script

        print(script("memory_cli", "memory", args.shell), end="")
        return 0
    from memory_client import MemorydError

    try:
        with _client(args) as client:
            COMMANDS[args.command](client, args)
    except Partly as partly:
        if not partly.said:
            _tell(partly.error, in_json=args.json)
        return EXIT_CODES.get(partly.error.code, 1)
    except MemorydError as error:
        _tell(error, in_json=args.json)
        return EXIT_CODES.get(error.code, 1)
    except Declined as reason:
        text = f"rejected: {one_line(str(reason))}; nothing was stored"
        _tell(text, in_json=args.json, code="FAILED_PRECONDITION", reason="REJECTED")
        return DECLINED
    except Usage as usage:
        _tell(usage, in_json=args.json, code="INVALID_ARGUMENT", reason="WRONG_USAGE")
        return EXIT_CODES["INVALID_ARGUMENT"]
    except UnicodeDecodeError:
        text = "standard input is not UTF-8 text"
        _tell(text, in_json=args.json, code="INVALID_ARGUMENT", reason="WRONG_USAGE")
        return EXIT_CODES["INVALID_ARGUMENT"]
    return 0


def _tell(error: Any, *, in_json: bool, code: str = "", reason: str = "", program: str = "memory") -> None:
    """Say on standard error what failed, in one line or as a JSON document."""
    if in_json:
        print(error_json(error, code, reason), file=sys.stderr)
    else:
        print(f"{program}: {one_line(as_typed(error))}", file=sys.stderr)


def run() -> None:
    """
    Run the command as a process of its own, and end it without taking the interpreter and gRPC apart.

    Everything is written and every connection closed by then; the rest takes a sixth of the command's time.
    """
    code = 1
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else its own lines come before an answer in JSON
    try:
        code = main()
    except SystemExit as asked:  # argparse: --help, or words that it does not know
        code = _code_of(asked)
    except BaseException:  # noqa: BLE001  shown as the interpreter would
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # as it is where the shell has closed it
                stream.flush()
        except OSError:
            code = code or 1
    os._exit(code)


def _code_of(asked: SystemExit) -> int:
    if asked.code is None or isinstance(asked.code, int):
        return asked.code or 0
    print(asked.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    run()
