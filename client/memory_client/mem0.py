"""
The interface of mem0's open-source library over memoryd: `from memory_client.mem0 import Memory, AsyncMemory`.

`user_id` is memoryd's user; `agent_id`, `run_id` and metadata are kept as metadata of each memory. docs/mem0.md lists
what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from memory_client.adapters.mem0_plans import Plans
from memory_client.adapters.mem0_values import ValidationError
from memory_client.adapters.plans import Plan, arun, run
from memory_client.endpoint import is_admin

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient, MemoryClient

__all__ = ["AsyncMemory", "Memory", "ValidationError"]


def _plain(plan: Callable[..., Plan[Any]]) -> Callable[..., Any]:
    """Return the method of Memory that a plan is carried out by."""

    @wraps(plan)
    def method(self: Memory, *arguments: Any, **named: Any) -> Any:
        return run(self.client, plan(self.plans, *arguments, **named))

    return method


def _awaited(plan: Callable[..., Plan[Any]]) -> Callable[..., Any]:
    """Return the method of AsyncMemory that a plan is carried out by."""

    @wraps(plan)
    async def method(self: AsyncMemory, *arguments: Any, **named: Any) -> Any:
        return await arun(self.client, plan(self.plans, *arguments, **named))

    return method


class Memory:
    """
    mem0's `Memory`: the same methods, arguments and shapes of answers.

    A configuration of mem0 is taken and not looked at: models and stores are the daemon's. `client` is a MemoryClient;
    by default it comes from the environment.
    """

    def __init__(self, config: object = None, *, client: MemoryClient | None = None) -> None:
        """Nothing is sent yet."""
        from memory_client import MemoryClient

        del config
        self.client = client or MemoryClient()
        self.plans = Plans(names_user=is_admin(self.client.target))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory; the configuration is not looked at."""
        return cls(config_dict)

    add = _plain(Plans.add)
    search = _plain(Plans.search)
    get = _plain(Plans.get)
    get_all = _plain(Plans.get_all)
    update = _plain(Plans.update)
    delete = _plain(Plans.delete)
    delete_all = _plain(Plans.delete_all)
    history = _plain(Plans.history)
    reset = _plain(Plans.reset)

    def close(self) -> None:
        """Close the client."""
        self.client.close()

    def __enter__(self) -> Self:
        """Return it, to be closed at the end of the block."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the client."""
        self.close()


class AsyncMemory:
    """mem0's `AsyncMemory`; as Memory, over an AsyncMemoryClient."""

    def __init__(self, config: object = None, *, client: AsyncMemoryClient | None = None) -> None:
        """Nothing is sent yet."""
        from memory_client import AsyncMemoryClient

        del config
        self.client = client or AsyncMemoryClient()
        self.plans = Plans(names_user=is_admin(self.client.target))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory; the configuration is not looked at."""
        return cls(config_dict)

    add = _awaited(Plans.add)
    search = _awaited(Plans.search)
    get = _awaited(Plans.get)
    get_all = _awaited(Plans.get_all)
    update = _awaited(Plans.update)
    delete = _awaited(Plans.delete)
    delete_all = _awaited(Plans.delete_all)
    history = _awaited(Plans.history)
    reset = _awaited(Plans.reset)

    async def close(self) -> None:
        """Close the client."""
        await self.client.close()

    async def __aenter__(self) -> Self:
        """Return it, to be closed at the end of the block."""
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """Close the client."""
        await self.close()
