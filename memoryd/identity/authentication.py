"""
Who a call is from, and what it may do: what the door gives, narrowed by the token that came with it.

The admin socket gives everything, a sandbox's socket its grant, the shared socket and TCP nothing. A token on top can
only narrow: on a sandbox's socket it has to be one of the same grant.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cachetools import LRUCache

from memoryd.errors import MemorydError, PermissionDenied, ScopeMismatch, Unauthenticated
from memoryd.identity.grants import Grants
from memoryd.model.call_context import CallContext
from memoryd.model.caller import DEFAULT_AGENT, Caller
from memoryd.model.grant import Door, Grant, Permission, TokenKey
from memoryd.model.token import Caveats, Token, parse_token
from memoryd.model.trust import Trust

__all__ = ["AUTHORIZATION_KEY", "Authenticator", "Session", "VerifiedTokens"]

AUTHORIZATION_KEY = "authorization"
_SCHEME = "bearer "
REMEMBERED_TOKENS = 4096  # about 2 KB each, in all doors together; the others are verified again, in 20 µs


@dataclass(frozen=True, slots=True)
class Session:
    """Who a call is from. Without a grant it is the host, which may act for anybody."""

    door: Door
    grant: Grant | None = None
    permissions: frozenset[Permission] = frozenset(Permission)
    chat_ids: tuple[str, ...] = ()
    expire_time: datetime | None = None
    token_id: str = ""

    def require(self, permission: Permission) -> None:
        """Raise PermissionDenied unless it is held."""
        if permission not in self.permissions:
            raise PermissionDenied(self._refused(permission))

    def _refused(self, permission: Permission) -> str:
        """Return what is not allowed, what is, and who to ask for more."""
        held = ", ".join(sorted(granted.value for granted in self.permissions)) or "nothing"
        text = f"the grant does not allow {permission.value!r}; it allows {held}"
        if self.grant is None:
            return text
        label = f" {self.grant.label!r}" if self.grant.label else ""
        return f"{text}. Who runs the host opened it (grant {self.grant.id[:8]}{label}), and can open one that does"

    def identity(self, agent_id: str, user_id: str, chat_id: str) -> tuple[str, str, str]:
        """
        Return agent, user and chat in effect for a request that names these; each may be empty.

        On the admin socket they are what the request says. Else they are what the grant binds, and what is said must
        agree: ScopeMismatch. Of several chats none is meant unless it is named.
        """
        grant = self.grant
        if grant is None:
            return agent_id or DEFAULT_AGENT, user_id, chat_id
        if agent_id and _nfc(agent_id) != grant.agent_id:
            raise ScopeMismatch("agent_id is not the one that the caller is bound to; leave it out", field="agent_id")
        if user_id and _nfc(user_id) != grant.user_id:
            raise ScopeMismatch("user_id is not the one that the caller is bound to; leave it out", field="user_id")
        chat = _nfc(chat_id) if chat_id else ""
        if chat and chat not in self.chat_ids:
            bound = ", ".join(self.chat_ids[:5]) or "none"
            raise ScopeMismatch(f"chat_id is not one that the caller is bound to ({bound})", field="chat_id")
        if not chat and len(self.chat_ids) == 1:
            chat = self.chat_ids[0]
        return grant.agent_id, grant.user_id, chat

    def caller(self, agent_id: str, user_id: str, chat_id: str) -> Caller:
        """Return the caller of an effective identity; IdentityMissing if it names no one."""
        if self.grant is None:
            return Caller(agent_id, user_id, chat_id, Trust.HOST)
        return Caller(agent_id, user_id, chat_id, Trust.SANDBOX, self.grant.id, self.grant.quota)


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@dataclass(frozen=True, slots=True)
class _Known:
    """A token that was verified: worth its session as long as its key and its grant are the same."""

    key: TokenKey
    session: Session
    via: frozenset[str]


class VerifiedTokens:
    """The tokens that were last verified, of all doors together."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[Door, str, bytes], _Known] = LRUCache(REMEMBERED_TOKENS)

    def get(self, place: tuple[Door, str, bytes]) -> _Known | None:
        """Return what is known of a token at a door."""
        return self._known.get(place)

    def put(self, place: tuple[Door, str, bytes], known: _Known) -> None:
        """Remember a token, and forget the one that was not used for longest."""
        self._known[place] = known


class Authenticator:
    """One way in: turns what a call brings along into a session, or refuses it."""

    def __init__(
        self,
        door: Door,
        grants: Grants,
        *,
        store_id: str,
        grant_id: str = "",
        verified: VerifiedTokens | None = None,
    ) -> None:
        """`grant_id` is the grant of a sandbox's socket; empty elsewhere. Doors may share `verified`."""
        self.door = door
        self.grant_id = grant_id
        self._grants = grants
        self._store_id = store_id
        self._host = Session(Door.ADMIN)
        self._verified_tokens = verified or VerifiedTokens()
        self._bound: Session | None = None  # of the grant as it was when last asked

    def authenticate(
        self, metadata: Iterable[tuple[str, str | bytes]], now: datetime, call_context: CallContext | None = None
    ) -> Session:
        """
        Return who calls; Unauthenticated if that cannot be established or counts no longer.

        The call_context is told of a genuine token also where it does not count.
        """
        text = ""
        for key, value in metadata:
            if key == AUTHORIZATION_KEY:
                text = value if isinstance(value, str) else value.decode("latin-1")
                break
        if text:
            return self._by_token(text, now, call_context)
        if self.door is Door.ADMIN:
            return self._host
        if self.door is not Door.SANDBOX:
            raise Unauthenticated("this door needs a token; set MEMORY_TOKEN_FILE to a file that holds one")
        grant = self._grants.get(self.grant_id)
        if grant is None:
            raise Unauthenticated("the grant does not exist; get a new one")
        if self._bound is None or self._bound.grant is not grant:
            self._bound = _session(Door.SANDBOX, grant)
        return self._in_time(self._bound, now)

    def _by_token(self, text: str, now: datetime, call_context: CallContext | None) -> Session:
        if text[: len(_SCHEME)].lower() != _SCHEME:
            raise Unauthenticated("authorization is not 'Bearer' and a token")
        text = text[len(_SCHEME) :].strip()
        place = (self.door, self.grant_id, hashlib.blake2b(text.encode(), digest_size=16).digest())
        known = self._verified_tokens.get(place)
        if known is None or not self._is_current(known):
            known = self._verified(parse_token(text))
            _tell(call_context, known.session)
            self._check_place(known)
            self._verified_tokens.put(place, known)  # only what counts at this door is remembered
        _tell(call_context, known.session)
        return self._in_time(known.session, now)

    def _is_current(self, known: _Known) -> bool:
        """Whether the key and the grant are still what they were when the token was verified."""
        grant = known.session.grant
        return grant is not None and self._grants.get(grant.id) is grant and self._grants.key(known.key.id) is known.key

    def _verified(self, token: Token) -> _Known:
        """Return what a token is worth if its time has not come; Unauthenticated says why it is nothing."""
        key = self._grants.key(token.key_id)
        if key is None or not token.is_signed_with(key.secret):
            raise Unauthenticated("the token is not genuine, or its key was dropped; get a new one")
        caveats = Caveats.read(token.caveats)
        grant = self._grants.get(token.grant_id)
        if grant is None:
            raise Unauthenticated("the grant does not exist; get a new one")
        session = _session(self.door, grant, token.token_id)
        for caveat in caveats:
            if caveat.audience and caveat.audience != self._store_id:
                raise Unauthenticated("the token is for another memoryd")
            session = _narrowed(session, caveat)
        return _Known(key, session, frozenset(caveat.via for caveat in caveats if caveat.via))

    def _check_place(self, known: _Known) -> None:
        """Raise Unauthenticated if the token is for another door, or of another grant than this socket."""
        grant = known.session.grant
        if self.door is Door.SANDBOX and (grant is None or grant.id != self.grant_id):
            raise Unauthenticated("the token is of another grant than this socket")
        if not known.via <= {self.door.value, self.grant_id}:
            raise Unauthenticated("the token is for another door")

    @staticmethod
    def _in_time(session: Session, now: datetime) -> Session:
        """Return a session that still counts."""
        refusal = session.grant.refusal(now) if session.grant else ""
        if refusal:
            raise Unauthenticated(f"{refusal}; get a new one")
        if session.expire_time is not None and session.expire_time <= now:
            raise Unauthenticated(f"the token expired at {session.expire_time:%Y-%m-%d %H:%M:%S} UTC; get a new one")
        return session

    def look_at(self, token: Token, now: datetime) -> tuple[Session | None, str]:
        """Return what a token is worth on some door and no refusal, or nothing and the refusal."""
        try:
            return self._in_time(self._verified(token).session, now), ""
        except MemorydError as error:
            return None, error.message


def _tell(call_context: CallContext | None, session: Session) -> None:
    if call_context is not None and session.grant is not None:
        call_context.grant_id, call_context.token_id = session.grant.id, session.token_id


def _session(door: Door, grant: Grant, token_id: str = "") -> Session:
    return Session(door, grant, grant.permissions, grant.chat_ids, grant.expire_time, token_id)


def _narrowed(session: Session, caveat: Caveats) -> Session:
    """Return what is left of a session under a caveat; never more than there was."""
    times = [time for time in (session.expire_time, caveat.expire_time) if time is not None]
    return Session(
        session.door,
        session.grant,
        session.permissions if caveat.permissions is None else session.permissions & caveat.permissions,
        session.chat_ids
        if caveat.chat_ids is None
        else tuple(chat_id for chat_id in session.chat_ids if chat_id in caveat.chat_ids),
        min(times, default=None),
        session.token_id,
    )
