"""What `memoryd token` does."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from memory_cli.output import as_json, one_line
from memory_client import Caveats, IssuedToken, MemoryClient, attenuate, check_permissions

from memoryd.cli.grants import revoke_each
from memoryd.cli.shown_grants import allowed, bound_to, until
from memoryd.cli.specs import many, spec_of
from memoryd.errors import InvalidArgument, Unauthenticated
from memoryd.model import limits
from memoryd.model.token import parse_token
from memoryd.paths import expanded

__all__ = ["attenuate_token", "inspect_token", "issue_token", "revoke_tokens", "rotate_keys"]


def _to_file(out: Path, make: Callable[[], str]) -> None:
    """
    Put a token into a file that its owner alone may read, in place of the one that is there.

    The file is made before the token, so that no token is made that cannot be handed over. What is there and is no
    plain file, such as a folder, a device or a link, is left as it is.
    """
    part = out.with_name(out.name + ".part")
    try:
        if out.is_symlink() or (out.exists() and not out.is_file()):
            raise InvalidArgument(f"{out} is no plain file; name another place", field="out")
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


def issue_token(client: MemoryClient, args: argparse.Namespace) -> int:
    """Make a token, and hand it out once."""
    if args.grant and (args.user or args.chat or args.allow):
        raise InvalidArgument("--grant names a grant that is there; leave --user, --chat and --allow out")
    target = args.grant or spec_of(args)

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
        f"token {issued.token_id} of grant {grant.id} ({bound_to(grant)}; {allowed(grant)}; until {until(end)})",
        file=sys.stderr,
    )
    return 0


def _given(args: argparse.Namespace) -> str:
    """Return the token of a file, of standard input, or of the environment."""
    name = args.token_file or os.environ.get("MEMORY_TOKEN_FILE", "")
    try:
        text = sys.stdin.read() if name == "-" else expanded(name).read_text(encoding="ascii") if name else ""
    except OSError as error:
        raise InvalidArgument(f"{name} cannot be read: {error.strerror}", field="token_file") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{name} holds no token", field="token_file") from None
    except ValueError as error:
        raise InvalidArgument(str(error), field="token_file") from None
    if not text.strip():
        raise InvalidArgument("there is no token; name --token-file, or - for standard input", field="token_file")
    return text.strip()


def attenuate_token(args: argparse.Namespace) -> int:
    """Make a token that allows less; no daemon is asked."""
    caveats = Caveats(
        permissions=check_permissions(many(args.allow)) if args.allow else None,
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


def inspect_token(client: MemoryClient, args: argparse.Namespace) -> int:
    """Tell what a token allows and whether it counts."""
    token = client.inspect_token(_given(args))
    if args.json:
        print(as_json(token))
        return 0 if token.valid else 1
    print(f"token    {token.token_id}, signed with key {token.key_id}")
    print(f"counts   {'yes' if token.valid else f'no: {token.refusal}'}")
    if token.grant is not None:
        grant = token.grant
        print(f"grant    {grant.id} ({bound_to(grant)}; {allowed(grant)}; until {until(grant.expire_time)})")
    for caveat in token.caveats:
        print(f"caveat   {one_line(caveat)}")
    return 0 if token.valid else 1


def revoke_tokens(client: MemoryClient, args: argparse.Namespace) -> int:
    """End grants, and with them every token of theirs."""
    names = list(args.id)
    if args.token_file:
        try:
            names.append(parse_token(_given(args)).grant_id)  # also of a token whose time is over: others may count
        except Unauthenticated as error:
            raise InvalidArgument(error.message, field="token_file") from None
    if not names:
        raise InvalidArgument("name the grant, or a --token-file with a token of it", field="id")
    return revoke_each(client, names, args, "revoked {id} ({who}) and every token of it")


def rotate_keys(client: MemoryClient, args: argparse.Namespace) -> int:
    """Sign tokens with a new key from now on."""
    keys = client.rotate_token_keys(drop_older=args.drop_older)
    if args.json:
        print(as_json(keys))
        return 0
    older = (
        f"; {', '.join(keys.older_key_ids)} still verify" if keys.older_key_ids else "; older tokens count no longer"
    )
    print(f"tokens are signed with key {keys.key_id} from now on{older}")
    return 0
