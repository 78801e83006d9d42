"""
A grant: for which user and chats, with which permissions and quotas, until when.

The only change of a grant is its revocation. Other rights need another grant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import NamedTuple

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits
from memoryd.model.open_enum import OpenEnum
from memoryd.model.scope import EVERY_AGENT
from memoryd.model.validation import check_id, check_text, check_time

__all__ = [
    "PRESETS",
    "Door",
    "Grant",
    "GrantSpec",
    "GrantStatus",
    "GrantText",
    "GrantUsage",
    "Permission",
    "Quota",
    "TokenKey",
    "check_permissions",
    "permission_names",
]


class Permission(OpenEnum):
    """What a caller may do; the names are those of the commands."""

    SEARCH = "search"
    LIST = "list"
    GET = "get"
    STATS = "stats"
    CONTEXT = "context"
    ADD = "add"
    CORRECT = "correct"
    DELETE = "delete"
    APPEND = "append"
    READ_MESSAGES = "read_messages"
    SEARCH_MESSAGES = "search_messages"
    SUMMARIZE = "summarize"
    SESSIONS = "sessions"
    NOTES = "notes"


_READING = frozenset({
    Permission.SEARCH, Permission.LIST, Permission.GET, Permission.STATS, Permission.CONTEXT,
    Permission.READ_MESSAGES, Permission.SEARCH_MESSAGES,
})  # what changes nothing  # fmt: skip
PRESETS = {
    "read-only": _READING,
    "append-only": _READING | {Permission.ADD, Permission.APPEND, Permission.SESSIONS},
    "full": frozenset(Permission),
}


def check_permissions(names: Iterable[str | Permission]) -> frozenset[Permission]:
    """Return the permissions of names, presets among them; InvalidArgument for none and for an unknown one."""
    if isinstance(names, str):
        raise InvalidArgument("permissions must be a list of names, not one text", field="permissions")
    permissions: set[Permission] = set()
    for name in names:
        if isinstance(name, str) and name in PRESETS:
            permissions |= PRESETS[name]
            continue
        try:
            permissions.add(Permission(name))
        except ValueError:
            known = [*PRESETS, *(permission.value for permission in Permission)]
            raise InvalidArgument(
                f"there is no permission {name!r}; known are {', '.join(known)}", field="permissions"
            ) from None
    if not permissions:
        raise InvalidArgument("permissions is empty; say what the grant allows", field="permissions")
    return frozenset(permissions)


class Door(OpenEnum):
    """The ways in."""

    ADMIN = "admin"
    """The admin socket: a process of the host, which may act for anybody."""
    SANDBOX = "sandbox"
    """The socket of one sandbox: every call through it belongs to one grant."""
    SHARED = "shared"
    """A Unix socket for many, each with a token."""
    TCP = "tcp"
    """TLS, each caller with a token."""


class GrantText(NamedTuple):
    """A text that came through a grant, as it counts to the quota."""

    grant_id: str
    day: date
    """When it was set (UTC)."""
    size: int
    """Bytes of UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a grant allows; 0 means no limit."""

    calls_per_second: float = 0.0
    """Calls that are let through; as many at once, at least 1, may come in a burst."""
    writes_per_day: int = 0
    """Statements and messages offered and memories deleted or restored in a day of UTC; each 16 KiB is at least one."""
    stored_memories: int = 0
    """Memories in the store, in every state, that came through it."""
    stored_bytes: int = 0
    """Bytes of their content, labels and metadata."""
    connections: int = 0
    """Open at once on its own socket; 0: 256."""

    def checked(self) -> Quota:
        """Return it; InvalidArgument names a number that is out of range."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= limits.MAX_QUOTA:
                raise InvalidArgument(
                    f"quota.{name} is {value}; it must lie between 0 (no limit) and {limits.MAX_QUOTA}",
                    field=f"quota.{name}",
                )
        return self


NO_LIMITS = Quota()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Who is bound to it, what they may do, how much, and until when."""

    id: str
    listener: bool
    """Whether it has a socket of its own; else it is used with tokens."""
    agent_id: str
    user_id: str = ""
    chat_ids: tuple[str, ...] = ()
    permissions: frozenset[Permission]
    quota: Quota = NO_LIMITS
    label: str = ""
    create_time: datetime
    expire_time: datetime | None = None
    revoke_time: datetime | None = None
    host_id: str = ""
    """Of one with a socket: the host that opened it, and alone opens it again (sandbox.host_id); no message has it."""

    def refusal(self, now: datetime) -> str:
        """Return why it no longer counts, in words; empty while it does."""
        if self.revoke_time is not None:
            return f"grant {self.id[:8]} was revoked at {self.revoke_time:%Y-%m-%d %H:%M:%S} UTC"
        if self.expire_time is not None and self.expire_time <= now:
            return f"grant {self.id[:8]} expired at {self.expire_time:%Y-%m-%d %H:%M:%S} UTC"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSpec:
    """A grant that is asked for, checked; `quota` has the fields of Quota that the configuration shall not decide."""

    agent_id: str = ""
    user_id: str = ""
    chat_ids: tuple[str, ...] = ()
    permissions: frozenset[Permission]
    quota: Mapping[str, float] = field(default_factory=dict)
    label: str = ""
    expire_time: datetime | None = None

    def __post_init__(self) -> None:
        """Check who is bound and until when; InvalidArgument or LimitExceeded names the field."""
        put = object.__setattr__
        put(self, "agent_id", check_id(self.agent_id, "agent_id"))
        if self.agent_id == EVERY_AGENT:
            raise InvalidArgument("agent_id '*' stands for every agent; a grant is of one", field="agent_id")
        put(self, "user_id", check_id(self.user_id, "user_id"))
        if len(self.chat_ids) > limits.MAX_GRANT_CHATS:
            raise LimitExceeded(
                f"chat_ids has {len(self.chat_ids)} entries; the limit is {limits.MAX_GRANT_CHATS}",
                field="chat_ids",
                limit="chat_ids",
            )
        chats = [check_id(chat_id, f"chat_ids[{n}]") for n, chat_id in enumerate(self.chat_ids)]
        if not all(chats):
            raise InvalidArgument("chat_ids has an empty entry; leave it out", field="chat_ids")
        put(self, "chat_ids", tuple(dict.fromkeys(chats)))
        if not self.user_id and not self.chat_ids:
            raise InvalidArgument("the grant names neither a user nor a chat: whose memories?", field="user_id")
        put(self, "permissions", check_permissions(self.permissions))
        put(self, "label", check_text(self.label, "label", limit=limits.MAX_LABEL_BYTES).strip())
        if not self.label.isprintable():
            raise InvalidArgument("label must be printable, on one line", field="label")
        put(self, "expire_time", check_time(self.expire_time, "expire_time"))
        unknown = set(self.quota) - set(Quota.__dataclass_fields__)
        if unknown:
            raise InvalidArgument(f"there is no quota {', '.join(sorted(unknown))}", field="quota")

    def grant(self, grant_id: str, default_agent: str, default_quota: Quota, now: datetime, *, listener: bool) -> Grant:
        """Return the grant; InvalidArgument if its time is over already, or a quota is out of range."""
        if self.expire_time is not None and self.expire_time <= now:
            raise InvalidArgument("expire_time is not in the future", field="expire_time")
        return Grant(
            id=grant_id,
            listener=listener,
            agent_id=self.agent_id or default_agent,
            user_id=self.user_id,
            chat_ids=self.chat_ids,
            permissions=self.permissions,
            quota=replace(default_quota, **self.quota).checked(),  # type: ignore[arg-type]  # checked here
            label=self.label,
            create_time=now,
            expire_time=self.expire_time,
        )


@dataclass(frozen=True, slots=True)
class GrantUsage:
    """What came through a grant so far."""

    writes_today: int = 0
    stored_memories: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class GrantStatus:
    """A grant with what came of it; `directory` is what to mount, empty where no socket is open."""

    grant: Grant
    usage: GrantUsage = GrantUsage()
    directory: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A root key that tokens are signed with; the newest signs, the others only verify."""

    id: str
    secret: bytes
    create_time: datetime

    def __repr__(self) -> str:
        """Leave the secret out of every trace."""
        return f"TokenKey({self.id})"


def permission_names(permissions: Iterable[Permission]) -> list[str]:
    """Return their names in the order of the enum."""
    granted = frozenset(permissions)
    strangers = sorted(permission.value for permission in granted.difference(Permission))
    return [*(permission.value for permission in Permission if permission in granted), *strangers]
