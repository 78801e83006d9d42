"""
A page of messages that the API of a model takes: no tool's result without its call, none empty for want of room.

Such APIs refuse a result whose call is not before it. And one message that is larger than the budget is worth more cut
than left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memoryd.domain.tokens import Count
from memoryd.model.conversation import CUT, Message, Role

__all__ = ["MOST_OF_A_TURN", "whole_turns"]

MOST_OF_A_TURN = 128  # messages before a page, among which the call of a tool is looked for
LEAST_TOKENS = 8  # of a message that is cut


def whole_turns(messages: Sequence[Message], first: int, max_tokens: int, count: Count) -> list[Message]:
    """
    Return of some messages in order those from `first` on, as a page that holds the call of each tool's result.

    Results whose call lies before it go to the page before. Where nothing else is left, the page begins with the call.
    What is too long for `max_tokens` (0: any number) even so is cut, the longest first.
    """
    first = min(first, len(messages) - 1)
    if first < 0:
        return []
    start = _after_orphans(messages, first)
    if start == len(messages):
        start = _with_calls(messages, first)
    page = list(messages[start:])
    return _cut(page, max_tokens, count) if max_tokens else page


def _after_orphans(messages: Sequence[Message], first: int) -> int:
    """Return where a page may begin at the earliest, from `first` on: behind each result whose call is before it."""
    calls: dict[str, int] = {}
    """By id the last message so far that called: ids may begin anew with each turn."""
    start = first
    for n, message in enumerate(messages):
        calls |= {call.id: n for call in message.tool_calls if call.id}
        if n < first or message.role is not Role.TOOL:
            continue
        called = calls.get(message.tool_call_id)
        leads = all(message.role is Role.TOOL for message in messages[start:n])
        if leads if called is None else called < start:
            start = n + 1
    return start


def _with_calls(messages: Sequence[Message], first: int) -> int:
    """Return where the last message before a page stands that is no tool's result: most likely the one that called."""
    return next((n for n in range(first - 1, -1, -1) if messages[n].role is not Role.TOOL), first)


def _cut(page: list[Message], max_tokens: int, count: Count) -> list[Message]:
    """
    Return messages with the longest contents cut, until all fit; arguments of tool calls stay whole.

    Where those alone do not fit, cutting would be in vain, and all stays as it is.
    """
    if sum(count(replace(message, content="").shown) for message in page) >= max_tokens:
        return page
    sizes = [count(message.shown) for message in page]
    for n in sorted((n for n, message in enumerate(page) if message.content), key=lambda n: -sizes[n]):
        over = sum(sizes) - max_tokens
        if over <= 0:
            break
        page[n] = _fitting(page[n], max(LEAST_TOKENS, sizes[n] - over), count)
        sizes[n] = count(page[n].shown)
    return page


def _fitting(message: Message, tokens: int, count: Count) -> Message:
    """Return a message whose content is cut so that it has at most so many tokens, as far as that is possible."""
    low, high = 0, len(message.content)
    while low < high:
        middle = (low + high + 1) // 2
        if count(replace(message, content=message.content[:middle] + CUT).shown) <= tokens:
            low = middle
        else:
            high = middle - 1
    return replace(message, content=message.content[:low].rstrip() + CUT)
