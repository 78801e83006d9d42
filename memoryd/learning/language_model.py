"""A language model as the daemon asks it: within the day's budget, and left alone for a while when it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from memoryd.learning.backoff import backoff_s
from memoryd.learning.budget import BudgetSpent, DailyBudget, Spent
from memoryd.llm.endpoint import ChatEndpoint, ChatUnavailable, QuestionRefused, Reply
from memoryd.model.measures import NO_MEASURES, Measures, Quantity
from memoryd.model.validation import text_digest

__all__ = ["PROBE", "LanguageModel", "prompt_of"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 600.0  # after a failure nothing is asked, twice as long after the next one
MOST_REFUSED = 5  # different questions in a row; then a harmless one tells whether it is the endpoint
PROBE = '{"n": 1, "speaker": "user", "text": "I live in a small town and I have a cat."}'
MESSAGE_TOKENS = 16  # that the form of a question takes, at most


@cache
def prompt_of(name: str) -> str:
    """Return a prompt by its name and version, such as "extraction.v1"."""
    return files("memoryd.learning").joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8").strip()


def most_tokens(text: str) -> int:
    """Return how many tokens a text has at most: tokenizers of bytes make no more than one of each."""
    return len(text.encode())


class LanguageModel:
    """Asks an endpoint. It raises Unavailable in one of its forms, and never blocks a call of anybody's."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        budget: DailyBudget,
        clock: Callable[[], datetime],
        *,
        most_at_once: int = 2,
        measures: Measures = NO_MEASURES,
    ) -> None:
        """Take the endpoint and the budget; nothing is asked yet."""
        self._endpoint, self._budget, self._clock, self._measures = endpoint, budget, clock, measures
        self._turns = asyncio.Semaphore(most_at_once)
        self._failed = 0
        self._refused: set[bytes] = set()
        self._left_alone_until: datetime | None = None
        self.failed_count = 0
        """Questions that got no answer, since the start."""
        self.fault = ""
        """Why it is not asked now; empty: it is."""

    @property
    def model(self) -> str:
        """The model's name at its endpoint."""
        return self._endpoint.model

    @property
    def budget(self) -> DailyBudget:
        """What it may use."""
        return self._budget

    async def ask(self, prompt: str, question: str, schema: Mapping[str, Any] | None = None) -> Reply:
        """Return the reply to a question under a prompt. ChatUnavailable, BudgetSpent, QuestionRefused."""
        async with self._turns:
            self._check_pause()
            system = prompt_of(prompt)
            most = most_tokens(system) + most_tokens(question) + 2 * MESSAGE_TOKENS
            return await self._asked(system, question, schema, await self._reserved(most), most)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _reserved(self, most: int) -> Spent:
        try:
            return await self._budget.reserve(most, self._endpoint.max_output_tokens)
        except BudgetSpent as error:
            self.fault = error.message
            raise

    async def _asked(
        self, system: str, question: str, schema: Mapping[str, Any] | None, reserved: Spent, most: int
    ) -> Reply:

        async def again() -> None:
            nonlocal reserved
            reserved = await self._reserved(most)

        began = time.perf_counter()
        try:
            reply = await self._endpoint.ask(system, question, schema, again=again)
            self._measures.measure(Quantity.MODEL, time.perf_counter() - began, "chat")
        except ChatUnavailable as error:
            self._leave_alone(error)
            if not error.may_be_billed:
                await self._budget.settle(reserved, 0, 0)
            raise
        except QuestionRefused as error:
            self.failed_count += 1
            self._refused.add(text_digest(question))
            if not error.may_be_billed:
                await self._budget.settle(reserved, 0, 0)
            if len(self._refused) >= MOST_REFUSED and not await self._answers_probe(system, schema):
                message = f"{error.message}, as every one of late"
                unavailable = ChatUnavailable(message, may_be_billed=error.may_be_billed)
                self._leave_alone(unavailable)
                raise unavailable from None
            raise
        self._refused.clear()
        self._failed, self._left_alone_until, self.fault = 0, None, ""
        prompt_tokens = most if reply.prompt_tokens is None else reply.prompt_tokens
        said = self._endpoint.max_output_tokens if reply.completion_tokens is None else reply.completion_tokens
        await self._budget.settle(reserved, prompt_tokens, said)
        return reply

    async def _answers_probe(self, system: str, schema: Mapping[str, Any] | None) -> bool:
        """
        Return whether the endpoint answers a harmless question: then it was what some user wrote that it refused.

        Else one user's texts would keep it from everybody. Where the day's budget is used up no one can tell: it does.
        """
        most = most_tokens(system) + most_tokens(PROBE) + 2 * MESSAGE_TOKENS
        try:
            reserved = await self._budget.reserve(most, self._endpoint.max_output_tokens)
        except BudgetSpent:
            return True
        try:
            await self._endpoint.ask(system, PROBE, schema)
        except (ChatUnavailable, QuestionRefused) as error:
            if not error.may_be_billed:
                await self._budget.settle(reserved, 0, 0)
            return False
        self._refused.clear()
        return True

    def _check_pause(self) -> None:
        until = self._left_alone_until
        if until is not None and self._clock() < until <= self._clock() + timedelta(seconds=3600):
            raise ChatUnavailable(
                f"{self.fault}; it is asked again later",
                may_be_billed=False,
                retry_after_s=(until - self._clock()).total_seconds(),
            )

    def _leave_alone(self, error: ChatUnavailable) -> None:
        self._failed += 1
        self.failed_count += 1
        self.fault = error.message
        pause_s = max(error.retry_after_s, backoff_s(self._failed, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S))
        self._left_alone_until = self._clock() + timedelta(seconds=pause_s)
