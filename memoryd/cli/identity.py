"""What `memoryd` does with identities: sandbox, grant, token."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import memory_cli
import memory_client
from memory_cli.output import as_json, day, list_json, memory_line, moment, one_line, shortest_ids
from memory_cli.parser import parse_expiry
from memory_client import (
    Caveats,
    Grant,
    GrantSpec,
    GrantStatus,
    IssuedToken,
    MemoryClient,
    NotFound,
    attenuate,
    check_permissions,
)

from memoryd.errors import InvalidArgument, Unauthenticated
from memoryd.model import limits
from memoryd.model.grant import PRESETS, Quota, permission_names
from memoryd.model.token import parse_token

__all__ = ["add_identity_commands"]

SOCKET_IN_SANDBOX = "memory.sock"
PAGE = 1000
_HELP = argparse.RawDescriptionHelpFormatter

_VIA = "only through: shared, tcp, or the id of the grant's own socket"

Connect = Callable[[argparse.Namespace], MemoryClient]
Command = Callable[[argparse.Namespace], int]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _many(values: Sequence[list[str]]) -> list[str]:
    return list(chain.from_iterable(values))


def _moment(text: str) -> datetime:
    """Return the end that `8h`, `2w` or a date says."""
    given = parse_expiry(text)
    return datetime.now(UTC) + timedelta(days=given) if isinstance(given, float) else given


def _add_spec(parser: argparse.ArgumentParser, *, required: bool) -> None:
    who = parser.add_argument_group("who it is for")
    who.add_argument("--user", metavar="ID", default="", help="the user whose memories it reaches")
    who.add_argument("--chat", metavar="ID", action="append", default=[], help="a chat that it may name; repeat it")
    who.add_argument("--agent", metavar="ID", default="", help="the agent (default: default)")
    what = parser.add_argument_group("what it allows")
    what.add_argument(
        "--allow",
        metavar="WHAT",
        type=_names,
        action="append",
        default=[],
        required=required,
        help="search, list, get, stats, context, add, correct, delete, or read-only, append-only, full; with commas",
    )
    what.add_argument("--ttl", metavar="TIME", type=_moment, help="until when: 8h, 2w, or a date (default: no end)")
    what.add_argument("--label", metavar="TEXT", default="", help="what it is for, in your words")
    for field in dataclasses.fields(Quota):
        what.add_argument(
            f"--{field.name.replace('_', '-')}",
            metavar="N",
            type=float if field.name == "calls_per_second" else int,
            help=f"quota (default: sandbox.{field.name} of the configuration; 0: no limit)",
        )


def _spec(args: argparse.Namespace) -> GrantSpec:
    given = {field.name: getattr(args, field.name) for field in dataclasses.fields(Quota)}
    return GrantSpec(
        agent_id=args.agent,
        user_id=args.user,
        chat_ids=tuple(args.chat),
        permissions=check_permissions(_many(args.allow)),
        quota={name: value for name, value in given.items() if value is not None},
        label=args.label,
        expire_time=args.ttl,
    )


# --- how things are shown ---


def _bound_to(grant: Grant) -> str:
    who = [grant.user_id or "nobody", *(f"chat {chat_id}" for chat_id in grant.chat_ids)]
    return ", ".join(who) + (f", agent {grant.agent_id}" if grant.agent_id != "default" else "")


def _allowed(grant: Grant) -> str:
    preset = next((name for name, held in PRESETS.items() if held == grant.permissions), "")
    return preset or ",".join(permission_names(grant.permissions)) or "nothing"


def _until(time: datetime | None) -> str:
    return moment(time) if time else "no end"


def _own_places() -> list[str]:
    """Return the directories outside /usr from which this Python has the `memory` command, outermost only."""
    packages = (Path(module.__file__).parent.parent for module in (memory_cli, memory_client) if module.__file__)
    places = sorted({Path(sys.prefix), Path(sys.base_prefix), *packages, Path(limits.__file__).parent.parent})
    return [
        str(place)
        for place in places
        if not place.is_relative_to("/usr")
        and not any(place != other and place.is_relative_to(other) for other in places)
    ]


def _mounts(grant: Grant, directory: str, mount: str) -> dict[str, Any]:
    """Return what a sandbox needs: what to mount where, the environment, and how to say so to the usual tools."""
    env = {"MEMORY_ENDPOINT": f"unix://{mount}/{SOCKET_IN_SANDBOX}"}
    if grant.user_id:
        env["MEMORY_USER_ID"] = grant.user_id
    if len(grant.chat_ids) == 1:
        env["MEMORY_CHAT_ID"] = grant.chat_ids[0]
    if grant.agent_id != "default":
        env["MEMORY_AGENT_ID"] = grant.agent_id
    container = ["run", "--rm", "-v", f"{directory}:{mount}:ro"]
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
    bwrap += ["--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev"]
    bwrap += ["--tmpfs", "/tmp", "--uid", "1000", "--gid", "1000"]  # noqa: S108  inside
    for place in _own_places():
        bwrap += ["--ro-bind", place, place]
    path = f"{sys.prefix}/bin:/usr/local/bin:/usr/bin" if _own_places() else "/usr/local/bin:/usr/bin"
    bwrap += ["--ro-bind", directory, mount, "--clearenv", "--setenv", "PATH", path]
    nspawn = ["systemd-nspawn", "-D", "ROOT", f"--bind-ro={directory}:{mount}"]
    for name, value in env.items():
        container += ["-e", f"{name}={value}"]
        bwrap += ["--setenv", name, value]
        nspawn.append(f"--setenv={name}={value}")
    return {
        "directory": directory,
        "mount": mount,
        "env": env,
        "examples": {
            "docker": shlex.join(["docker", *container]) + " IMAGE memory whoami",
            "podman": shlex.join(["podman", *container]) + " IMAGE memory whoami",
            "bubblewrap": shlex.join(bwrap) + " memory whoami",
            "systemd-nspawn": shlex.join(nspawn) + " memory whoami",
        },
    }


def _state(grant: Grant, *, ended: bool) -> str:
    if grant.revoke_time is not None:
        return f"ended {moment(grant.revoke_time)}"
    if grant.expire_time is None:
        return "open"
    return f"{'ended' if ended else 'until'} {moment(grant.expire_time)}"


def _grant_line(status: GrantStatus, short_id: str) -> str:
    grant, usage = status.grant, status.usage
    state = _state(grant, ended=bool(status.refusal))
    kind = "sandbox" if grant.listener else "token"
    label = f"  {one_line(grant.label)}" if grant.label else ""
    return (
        f"{short_id}  {kind:<7}  {_bound_to(grant)}  {_allowed(grant)}  {usage.stored_memories} memories,"
        f" {usage.writes_today} writes today  {state}{label}"
    )


def _show_grants(client: MemoryClient, args: argparse.Namespace, *, listeners_only: bool) -> int:
    found: list[GrantStatus] = []
    token = ""
    while True:
        page = client.grants(page_token=token, include_ended=args.all, listeners_only=listeners_only)
        found += page.grants
        token = page.next_page_token
        if not token:
            break
    if args.json:
        print(list_json("grants", found))
        return 0
    known = shortest_ids(status.grant.id for status in found)
    for status in found:
        print(_grant_line(status, known[status.grant.id]))
    if not found:
        print("none" if args.all else "none; --all shows those that have ended", file=sys.stderr)
    return 0


# --- sandbox ---


def _open(client: MemoryClient, args: argparse.Namespace) -> int:
    if not args.mount.startswith("/"):
        raise InvalidArgument(f"--mount is {args.mount!r}; it must be an absolute path", field="mount")
    status = client.open_sandbox(_spec(args))
    grant = status.grant
    needs = _mounts(grant, status.directory, args.mount.rstrip("/"))
    if args.json:
        print(as_json({"grant": grant, **needs}))
        return 0
    print(f"sandbox      {grant.id}")
    print(f"bound to     {_bound_to(grant)}")
    print(f"may          {', '.join(permission_names(grant.permissions))}")
    print(f"until        {_until(grant.expire_time)}")
    print(f"mount        {needs['directory']}  (read-only, the directory, at {needs['mount']})")
    print("environment  " + "\n             ".join(f"{name}={value}" for name, value in needs["env"].items()))
    for tool, example in needs["examples"].items():
        print(f"\n# {tool}\n{example}")
    return 0


def _close(client: MemoryClient, args: argparse.Namespace) -> int:
    return _revoke_each(client, args.id, args, "closed {id} ({who})")


def _revoke_each(client: MemoryClient, names: Sequence[str], args: argparse.Namespace, text: str) -> int:
    """Revoke what is there of these grants, telling each, and what is not; return the exit code."""
    revoked, code = [], 0
    for name in names:
        try:
            grant = client.revoke_grant(name)
        except (NotFound, InvalidArgument) as error:
            print(f"memoryd: {error.message}", file=sys.stderr)
            code = 1
            continue
        revoked.append(grant)
        if not args.json:
            print(text.format(id=grant.id[:8], who=_bound_to(grant)))
    if args.json:
        print(list_json("grants", revoked))
    return code


# --- grant ---


def _memories(client: MemoryClient, args: argparse.Namespace) -> int:
    found: list[Any] = []
    token = ""
    while True:
        size = PAGE if args.all else min(PAGE, args.limit - len(found))
        page = client.grant_memories(args.id, page_size=size, page_token=token, include_deleted=args.deleted)
        found += page.memories
        token = page.next_page_token
        if not token or (not args.all and len(found) >= args.limit):
            break
    if args.json:
        print(list_json("memories", found, more=bool(token)))
        return 0
    known = shortest_ids(memory.id for memory in found)
    for memory in found:
        scope = memory.scope
        whose = f"chat {scope.chat_id}" if scope.chat_id else f"user {scope.user_id}"
        print(f"{memory_line(memory, known[memory.id])}  ({one_line(whose)})")
    if not found:
        print("nothing came through it, or nothing is left of it", file=sys.stderr)
    if token:
        print(f"… more: --limit {2 * args.limit}, or --all", file=sys.stderr)
    return 0


def _forget(client: MemoryClient, args: argparse.Namespace) -> int:
    if args.close and not args.dry_run:
        client.revoke_grant(args.id)
    elif any(status.grant.id.startswith(args.id.lower()) for status in client.grants().grants):
        print("memoryd: the grant still counts, so more may follow; --close ends it first", file=sys.stderr)
    gone = client.delete_grant_memories(args.id, dry_run=args.dry_run, purge=args.now)
    if args.json:
        print(as_json(gone))
        return 0
    verb = ("would erase" if args.now else "would delete") if gone.dry_run else ("erased" if args.now else "deleted")
    until = f", can be taken back until {day(gone.purge_time)}" if gone.purge_time else ""
    print(f"{verb} {gone.deleted_count} memories{until}")
    if gone.superseded_ids:
        print(
            f"they had replaced {len(gone.superseded_ids)} of others; to bring those back, as whose they are:"
            " memory undelete --user … --chat … ID"
        )
        for memory_id in gone.superseded_ids:
            print(f"  {memory_id}")
    return 0


# --- token ---


def _to_file(out: Path, make: Callable[[], str]) -> None:
    """
    Put a token into a file that its owner alone may read, in place of the one that is there.

    The file is made before the token, so that no token is made that cannot be handed over.
    """
    part = out.with_name(out.name + ".part")
    try:
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(make() + "\n")
            part.replace(out)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InvalidArgument(f"{out} cannot be written: {error.strerror}", field="out") from None


def _issue(client: MemoryClient, args: argparse.Namespace) -> int:
    if args.grant and (args.user or args.chat or args.allow):
        raise InvalidArgument("--grant names a grant that is there; leave --user, --chat and --allow out")
    target = args.grant or _spec(args)

    def issue() -> IssuedToken:
        end = args.ttl if args.grant else None  # of a new grant it is the grant's own
        return client.issue_token(target, expire_time=end, via=args.via)

    made: list[IssuedToken] = []
    if args.out is None:
        made.append(issue())
    else:
        _to_file(args.out, lambda: made.append(issue()) or made[0].token)  # type: ignore[func-returns-value]
    issued = made[0]
    if args.json:
        shown = {"token_id": issued.token_id, "grant": issued.grant}
        print(as_json(shown if args.out else {**shown, "token": issued.token}))
        return 0
    if args.out is None:
        print(issued.token)
    grant = issued.grant
    end = min((time for time in (args.ttl, grant.expire_time) if time is not None), default=None)
    print(
        f"token {issued.token_id} of grant {grant.id} ({_bound_to(grant)}; {_allowed(grant)}; until {_until(end)})",
        file=sys.stderr,
    )
    return 0


def _given(args: argparse.Namespace) -> str:
    """Return the token of a file, of standard input, or of the environment."""
    name = args.token_file or os.environ.get("MEMORY_TOKEN_FILE", "")
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="ascii") if name else ""
    except OSError as error:
        raise InvalidArgument(f"{name} cannot be read: {error.strerror}", field="token_file") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{name} holds no token", field="token_file") from None
    if not text.strip():
        raise InvalidArgument("there is no token; name --token-file, or - for standard input", field="token_file")
    return text.strip()


def _attenuate(args: argparse.Namespace) -> int:
    caveats = Caveats(
        permissions=check_permissions(_many(args.allow)) if args.allow else None,
        chat_ids=frozenset() if args.no_chats else frozenset(args.chat) if args.chat else None,
        expire_time=args.ttl,
        audience=args.audience,
        via=args.via,
    )
    if args.ttl is not None and args.ttl <= datetime.now(UTC):
        raise InvalidArgument("--ttl is over already", field="ttl")
    if args.via not in {"", "shared", "tcp"} and len(args.via) != limits.ID_LENGTH:
        raise InvalidArgument(f"--via is {args.via!r}; it must be shared, tcp, or the whole id of a grant", field="via")
    narrowed = attenuate(_given(args), caveats)
    if args.out is not None:
        _to_file(args.out, lambda: narrowed)
    elif args.json:
        print(as_json({"token": narrowed, "caveats": parse_token(narrowed).caveats}))
    else:
        print(narrowed)
    return 0


def _inspect(client: MemoryClient, args: argparse.Namespace) -> int:
    found = client.inspect_token(_given(args))
    if args.json:
        print(as_json(found))
        return 0 if found.valid else 1
    print(f"token    {found.token_id}, signed with key {found.key_id}")
    print(f"counts   {'yes' if found.valid else f'no: {found.refusal}'}")
    if found.grant is not None:
        grant = found.grant
        print(f"grant    {grant.id} ({_bound_to(grant)}; {_allowed(grant)}; until {_until(grant.expire_time)})")
    for caveat in found.caveats:
        print(f"caveat   {one_line(caveat)}")
    return 0 if found.valid else 1


def _revoke(client: MemoryClient, args: argparse.Namespace) -> int:
    names = list(args.id)
    if args.token_file:
        try:
            names.append(parse_token(_given(args)).grant_id)  # also of a token whose time is over: others may count
        except Unauthenticated as error:
            raise InvalidArgument(error.message, field="token_file") from None
    if not names:
        raise InvalidArgument("name the grant, or a --token-file with a token of it", field="id")
    return _revoke_each(client, names, args, "revoked {id} ({who}) and every token of it")


def _rotate(client: MemoryClient, args: argparse.Namespace) -> int:
    keys = client.rotate_token_keys(drop_older=args.drop_older)
    if args.json:
        print(as_json(keys))
        return 0
    older = (
        f"; {', '.join(keys.older_key_ids)} still verify" if keys.older_key_ids else "; older tokens count no longer"
    )
    print(f"tokens are signed with key {keys.key_id} from now on{older}")
    return 0


# --- the parser ---


def add_identity_commands(commands: Any, common: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the commands to a parser's; each sets `run` to what carries it out."""

    def with_client(command: Callable[[MemoryClient, argparse.Namespace], int]) -> Command:
        def run(args: argparse.Namespace) -> int:
            with connect(args) as client:
                return command(client, args)

        return run

    def add(group: Any, name: str, run: Command, text: str, epilog: str = "") -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = group.add_parser(
            name, parents=[common], help=text, description=text, epilog=epilog, formatter_class=_HELP
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.set_defaults(run=run)
        return parser

    def group(name: str, text: str) -> Any:
        parser = commands.add_parser(name, help=text, description=text)
        return parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    sandbox = group("sandbox", "open, list and close the sockets of sandboxes")
    parser = add(
        sandbox,
        "open",
        with_client(_open),
        "make a socket whose callers are bound to a user and chats",
        "examples:\n  memoryd sandbox open --user alice --chat team-7 --allow search,add --ttl 8h\n"
        "  memoryd sandbox open --user alice --allow read-only --label 'code runner' --json",
    )
    _add_spec(parser, required=True)
    parser.add_argument("--mount", metavar="DIR", default="/run/memory", help="where it is in there (/run/memory)")
    parser = add(sandbox, "list", with_client(lambda c, a: _show_grants(c, a, listeners_only=True)), "list sandboxes")
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser = add(sandbox, "close", with_client(_close), "close sockets, cut their calls, and end their grants")
    parser.add_argument("id", nargs="+", metavar="ID", help="the sandbox; 8 characters are enough")

    grant = group("grant", "look at grants, and clean up what came through one")
    parser = add(grant, "list", with_client(lambda c, a: _show_grants(c, a, listeners_only=False)), "list grants")
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser = add(grant, "memories", with_client(_memories), "list the memories that came through a grant")
    parser.add_argument("id", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many at the most (20)")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--deleted", action="store_true", help="also those that were deleted and can be restored")
    parser = add(
        grant,
        "forget",
        with_client(_forget),
        "delete all memories that came through a grant",
        "examples:\n  memoryd grant forget 3z7rg3dn --dry-run\n  memoryd grant forget 3z7rg3dn --close",
    )
    parser.add_argument("id", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--dry-run", action="store_true", help="only count them")
    parser.add_argument("--now", action="store_true", help="erase them; they cannot be taken back")
    parser.add_argument("--close", action="store_true", help="end the grant first, so that nothing more comes")

    token = group("token", "issue, narrow, inspect and revoke tokens for the shared socket and TCP")
    parser = add(
        token,
        "issue",
        with_client(_issue),
        "make a token, for a new grant or for one that is there",
        "examples:\n  memoryd token issue --user alice --allow search --ttl 1h --out alice.token\n"
        "  memoryd token issue --grant 3z7rg3dn --ttl 1h --via tcp",
    )
    _add_spec(parser, required=False)
    parser.add_argument("--grant", metavar="ID", default="", help="a grant that is there, instead of a new one")
    parser.add_argument(
        "--via", metavar="DOOR", default="", help="only through: shared, tcp, or the grant's own socket"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="put it there, readable for its owner alone")
    parser = add(
        token,
        "attenuate",
        _attenuate,
        "make a token that allows less; needs no daemon",
        "example:\n  memoryd token attenuate --token-file alice.token --allow search --ttl 5m",
    )
    _add_token_file(parser)
    parser.add_argument("--allow", metavar="WHAT", type=_names, action="append", default=[], help="only this")
    parser.add_argument("--chat", metavar="ID", action="append", default=[], help="only this chat; repeat it")
    parser.add_argument("--no-chats", action="store_true", help="no chat at all")
    parser.add_argument("--ttl", metavar="TIME", type=_moment, help="until when: 5m, 8h, or a date")
    parser.add_argument("--audience", metavar="STORE", default="", help="only the store of this id (memoryd status)")
    parser.add_argument(
        "--via", metavar="DOOR", default="", help="only through: shared, tcp, or the grant's own socket"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="put it there, readable for its owner alone")
    parser = add(token, "inspect", with_client(_inspect), "tell what a token allows and whether it counts")
    _add_token_file(parser)
    parser = add(token, "revoke", with_client(_revoke), "end grants, and with them every token of theirs")
    parser.add_argument("id", nargs="*", metavar="ID", help="the grant; 8 characters are enough")
    parser.add_argument("--token-file", metavar="FILE", default="", help="a token of the grant; - for standard input")
    parser = add(token, "rotate", with_client(_rotate), "sign tokens with a new key")
    parser.add_argument("--drop-older", action="store_true", help="all tokens issued so far count no longer")


def _add_token_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", metavar="FILE", default="", help="the token; - for standard input (default: $MEMORY_TOKEN_FILE)"
    )
