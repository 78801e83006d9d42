"""Whose memories they are, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.errors import InvalidArgument

__all__ = ["EVERY_AGENT", "Owner", "Scope", "Visibility"]

EVERY_AGENT = "*"
"""The agent_id by which the host lists what a user has with any agent; none is called so."""


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
    agents: tuple[str, ...] = ()
    """Where agent_id is EVERY_AGENT: all of them."""

    @property
    def owners(self) -> tuple[Owner, ...]:
        """One or two owners, the user's first; of every agent as many for each."""
        agents = self.agents if self.agent_id == EVERY_AGENT else (self.agent_id,)
        scopes = []
        if self.user_id:
            scopes.append(Scope(user_id=self.user_id))
        if self.chat_id:
            scopes.append(Scope(chat_id=self.chat_id))
        return tuple(Owner(agent_id, scope) for agent_id in agents for scope in scopes)
