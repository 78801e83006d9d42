"""Whose memories they are, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.errors import InvalidArgument

__all__ = ["Owner", "Scope", "Visibility"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Who may recall a memory: one user, or everyone in one chat."""

    user_id: str | None = None
    chat_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a scope of both and a scope of neither."""
        if (not self.user_id) == (not self.chat_id):
            raise InvalidArgument("a scope names exactly one of user_id and chat_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """An agent and a scope: the unit of duplicates, of supersession and of the index."""

    agent_id: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a caller may see: the personal memories of user_id and the group memories of chat_id, of one agent."""

    agent_id: str
    user_id: str | None
    chat_id: str | None

    @property
    def owners(self) -> tuple[Owner, ...]:
        """One or two owners; the user's first."""
        scopes = []
        if self.user_id:
            scopes.append(Scope(user_id=self.user_id))
        if self.chat_id:
            scopes.append(Scope(chat_id=self.chat_id))
        return tuple(Owner(self.agent_id, scope) for scope in scopes)
