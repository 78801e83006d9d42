"""Reading a thread: the last messages within a budget, page by page backwards."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memoryd.domain.conversation.threads import ThreadKey, known_thread
from memoryd.domain.conversation.whole_turns import MOST_OF_A_TURN, whole_turns
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.page_token import bound_to, number_after, read_number
from memoryd.domain.tokens import Count, token_count
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.conversation import Message
from memoryd.model.talk import MessagePage
from memoryd.model.validation import check_count, check_id
from memoryd.store.conversations import MessageSelector

__all__ = ["last_within", "list_messages"]


async def list_messages(  # noqa: PLR0913  one argument for each field of the contract
    key: ThreadKey,
    caller: Caller,
    ports: Ports,
    *,
    page_size: int = 0,
    page_token: str = "",
    max_tokens: int = 0,
    session_id: str = "",
    in_view: bool = False,
    message_ids: Collection[str] = (),
    whole: bool = False,
) -> MessagePage:
    """Return the last messages of a thread, or those before a page; see ListMessages in the contract."""
    size = check_count(
        page_size,
        "page_size",
        default=ports.policy.of(caller.agent_id).conversation.recent_messages,
        limit=limits.MAX_PAGE_SIZE,
    )
    tokens = check_count(max_tokens, "max_tokens", default=0, limit=limits.MAX_CONTEXT_TOKENS)
    session_id = check_id(session_id, "session_id")
    owner = key.owner(caller)
    thread = await known_thread(key, owner, ports)
    if message_ids:
        named = await ports.store.conversations.messages(
            MessageSelector(
                owner=owner,
                thread_id=thread.id,
                ids=message_ids,
                limit=len(message_ids),
                is_from_end=True,
                most_bytes=limits.MAX_PAGE_BYTES,
            ),
        )
        return MessagePage(tuple(last_within(named, tokens)), "")
    bound = bound_to("messages", caller, key, session_id, in_view, *([whole] if whole else []))
    before = read_number(page_token, ports.page_secret, bound) if page_token else 0
    wanted = MessageSelector(
        owner=owner,
        thread_id=thread.id,
        limit=size + (MOST_OF_A_TURN if whole else 1),
        is_from_end=True,
        before=before or thread.last_seq + 1,
        after=thread.view_seq if in_view else 0,
        session_id=session_id,
        most_bytes=limits.MAX_PAGE_BYTES,
    )
    messages = await ports.store.conversations.messages(wanted)
    page = last_within(messages[-size:], tokens)
    if whole:
        page = whole_turns(messages, len(messages) - len(page), tokens, token_count)
    # the last one is too long for the budget by itself: it is left out, and the next page begins before it
    first = page[0] if page else messages[-1] if messages else None
    token = (
        number_after(first.seq, ports.page_secret, bound)
        if first is not None and max(len(page), 1) < len(messages)
        else ""
    )
    return MessagePage(tuple(page), token)


def last_within(messages: Sequence[Message], max_tokens: int, count: Count = token_count) -> list[Message]:
    """
    Return the last messages that fit into so many tokens (0: any number) and into an answer, in order.

    The oldest are dropped first. Without a budget the last message is there whatever its size.
    """
    fitting: list[Message] = []
    left, room = max_tokens, limits.MAX_PAGE_BYTES
    for message in reversed(messages):
        room -= message.text_bytes
        left -= count(message.shown)
        if (max_tokens and left < 0) or (room < 0 and fitting):
            break
        fitting.append(message)
    return fitting[::-1]
