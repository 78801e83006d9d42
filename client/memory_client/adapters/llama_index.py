"""A memory block of LlamaIndex: `Memory.from_defaults(memory_blocks=[MemorydBlock(client=client)])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import Field, PrivateAttr

from memory_client.adapters.away import Away
from memory_client.adapters.items import append_all, thread_id_of
from memory_client.adapters.plans import arun
from memory_client.adapters.texts import clean
from memoryd.model import limits
from memoryd.model.conversation import Role
from memoryd.model.message_draft import MessageDraft

__all__ = ["MemorydBlock"]

ROLES = {MessageRole.USER: Role.USER, MessageRole.ASSISTANT: Role.ASSISTANT, MessageRole.SYSTEM: Role.SYSTEM}
CHARACTERS_A_TOKEN = 4


class MemorydBlock(BaseMemoryBlock[str]):
    """
    What is known of the client's user, for the user's last words; what leaves the short-term memory is kept.

    While the daemon is away nothing is stored or known, and that is said once a minute; `strict` raises instead.
    """

    name: str = "memoryd"
    client: Any = Field(description="an AsyncMemoryClient")
    thread_id: str = "llama-index"
    max_tokens: int = 1000
    strict: bool = False
    _away: Any = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Make what tells that the daemon is away."""
        super().model_post_init(context)
        self._away = Away("the memory block", strict=self.strict)

    async def _aget(self, messages: Sequence[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        del block_kwargs
        said = [message.content or "" for message in messages or () if message.role is MessageRole.USER]
        prompt = clean(said[-1], limits.MAX_PROMPT_BYTES // 4) if said else ""
        built = await self._away.instead(None, self.client.context(prompt, max_tokens=self.max_tokens))
        return built.text if built else ""

    async def _aput(self, messages: Sequence[ChatMessage]) -> None:
        drafts = [
            MessageDraft(role=ROLES.get(message.role, Role.TOOL), content=message.content)
            for message in messages
            if (message.content or "").strip()
        ]
        await self._away.instead(None, arun(self.client, append_all(thread_id_of(self.thread_id), drafts)))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the beginning of a context, which is what matters most, in whole lines; None where nothing is left."""
        kept = content[: max(0, len(content) - CHARACTERS_A_TOKEN * tokens_to_truncate)]
        return kept.rpartition("\n")[0] or None
