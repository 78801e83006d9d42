"""The verified identity behind a call."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from memoryd.errors import IdentityMissing, InvalidArgument
from memoryd.model.grant import NO_LIMITS, Quota
from memoryd.model.scope import Owner, Scope, Visibility
from memoryd.model.trust import Trust
from memoryd.model.validation import check_id

__all__ = ["DEFAULT_AGENT", "Caller"]

DEFAULT_AGENT = "default"


class _Said(Protocol):
    """A memory or a message."""

    @property
    def trust(self) -> Trust: ...

    @property
    def scope(self) -> Scope: ...

    @property
    def author(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The verified identity behind a call."""

    agent_id: str = DEFAULT_AGENT
    user_id: str | None = None
    chat_id: str | None = None
    trust: Trust = Trust.HOST
    grant_id: str = ""
    quota: Quota = NO_LIMITS
    agents: tuple[str, ...] = ()
    """Where agent_id is EVERY_AGENT: all of them."""

    def __post_init__(self) -> None:
        """Check the ids; IdentityMissing if neither says who asks."""
        for name in ("agent_id", "user_id", "chat_id"):
            value = getattr(self, name)
            object.__setattr__(self, name, check_id(value, name) or None if value else None)
        if self.agent_id is None:
            object.__setattr__(self, "agent_id", DEFAULT_AGENT)
        if self.user_id is None and self.chat_id is None:
            raise IdentityMissing(
                "neither user_id nor chat_id is set; say who asks: user_id=…, or MEMORY_USER_ID", field="user_id"
            )

    @property
    def visibility(self) -> Visibility:
        """What it may see."""
        return Visibility(self.agent_id, self.user_id, self.chat_id, self.agents)

    def may_erase(self, one: _Said) -> bool:
        """
        Whether it may erase a memory or message for good: nothing of higher trust.

        Among different users of a chat a sandbox deletes, and the host purges: what another user's stored can be
        restored, whoever deleted it.
        """
        if one.trust.outranks(self.trust):
            return False
        return not self.trust.is_sandbox or one.scope.user_id is not None or one.author == (self.user_id or "")

    def reads_as(self, owner: Owner) -> str:
        """Who reads what an owner has: the user in a chat; in their own memory no one else is there."""
        return self.user_id or "" if owner.scope.user_id is None else ""

    @property
    def turn(self) -> Hashable:
        """What takes turns at what is scarce: its grant, else itself."""
        return self.grant_id or self

    def writes_to(self, *, shared: bool) -> Owner:
        """Where its statements go: to the chat if shared, else to the user."""
        if shared:
            if not self.chat_id:
                raise InvalidArgument("shared needs a chat_id: say which chat is meant", field="chat_id")
            return Owner(self.agent_id, Scope(chat_id=self.chat_id))
        if not self.user_id:
            raise IdentityMissing("what is personal needs a user_id; with shared it is the chat's", field="user_id")
        return Owner(self.agent_id, Scope(user_id=self.user_id))
