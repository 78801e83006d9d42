"""
What a language model may use in one day: tokens and money, counted in the store.

Each question is reserved for before it is asked, by what it may use at most, and settled with what it has used: so a
crash, or a second daemon, never makes it cost more than its budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from memoryd.domain.ports import Ports
from memoryd.errors import Contended, Unavailable
from memoryd.model.change import ChangeSet
from memoryd.model.work import CounterName

__all__ = ["BudgetSpent", "DailyBudget", "Limits", "QuestionTooLarge", "Spent"]

TOKENS, COST, CALLS = "llm_tokens", "llm_cost", "llm_calls"  # counters of the store, of each day
MICRO = 1_000_000  # of the unit of money that are counted; prices are per million tokens, so a token costs its price
MOST_ATTEMPTS = 20  # against others that write it down


class BudgetSpent(Unavailable):
    """The day's budget does not hold another question; the next day begins in `for_s` seconds."""

    def __init__(self, for_s: float) -> None:
        """Say for how long."""
        super().__init__("the day's budget of the language model is spent")
        self.for_s = for_s


class QuestionTooLarge(Unavailable):
    """A question that may use more than a whole day's budget is never asked; others are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one day may hold; 0: no limit. Prices are of a million tokens, in any unit of money."""

    tokens: int = 0
    cost: float = 0.0
    input_price: float = 0.0
    output_price: float = 0.0

    def micro(self, prompt_tokens: int, completion_tokens: int) -> int:
        """Return what tokens cost, in millionths of the unit."""
        return round(prompt_tokens * self.input_price + completion_tokens * self.output_price)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a day has used."""

    day: date
    tokens: int = 0
    micro: int = 0
    calls: int = 0


class DailyBudget:
    """The budget of the current day, of the daemon's time zone."""

    def __init__(self, ports: Ports, limits: Limits, clock: Callable[[], datetime], zone: tzinfo | None = None) -> None:
        """Take the limits; nothing is read yet."""
        self.limits = limits
        self._ports, self._clock, self._zone = ports, clock, zone

    async def spent(self) -> Spent:
        """Return what today has used."""
        return self._spent_of(await self._ports.store.work.counters())

    def _spent_of(self, counters: Mapping[CounterName, int]) -> Spent:
        today = self._clock().astimezone(self._zone).date()
        for day in (today + timedelta(days=1), today):  # a clock that was set back opens no new day
            if CounterName(CALLS, day) in counters:
                return Spent(day, *(counters.get(CounterName(name, day), 0) for name in (TOKENS, COST, CALLS)))
        return Spent(today)  # a day far ahead was written by a clock that was wrong

    async def reserve(self, prompt_tokens: int, completion_tokens: int) -> Spent:
        """Take what a question may use at most, and return it; BudgetSpent where the day does not hold it."""
        limits, micro = self.limits, self.limits.micro(prompt_tokens, completion_tokens)
        tokens = prompt_tokens + completion_tokens
        if (limits.tokens and tokens > limits.tokens) or (limits.cost and micro > limits.cost * MICRO):
            raise QuestionTooLarge("a question to the language model is larger than a day's budget")

        def more(spent: Spent) -> Spent:
            over = limits.tokens and spent.tokens + tokens > limits.tokens
            if over or (limits.cost and spent.micro + micro > limits.cost * MICRO):
                raise BudgetSpent(self._until_tomorrow())
            return Spent(spent.day, spent.tokens + tokens, spent.micro + micro, spent.calls + 1)

        return Spent((await self._change(more)).day, tokens, micro)

    async def settle(self, reserved: Spent, prompt_tokens: int, completion_tokens: int) -> None:
        """Give back what a question has not used; of an earlier day nothing is given back."""
        tokens = reserved.tokens - prompt_tokens - completion_tokens
        micro = reserved.micro - self.limits.micro(prompt_tokens, completion_tokens)

        def less(spent: Spent) -> Spent:
            if spent.day != reserved.day:
                return spent
            return Spent(spent.day, max(0, spent.tokens - tokens), max(0, spent.micro - micro), spent.calls)

        await self._change(less)

    async def _change(self, by: Callable[[Spent], Spent]) -> Spent:
        for attempt in range(MOST_ATTEMPTS):
            counters = await self._ports.store.work.counters()
            after = by(self._spent_of(counters))
            names = [CounterName(name, after.day) for name in (TOKENS, COST, CALLS)]
            values = dict(zip(names, (after.tokens, after.micro, after.calls), strict=True))
            over = tuple(
                counter_name
                for counter_name in counters
                if counter_name.name in {TOKENS, COST, CALLS} and counter_name.day != after.day
            )
            change = ChangeSet(
                counters=values, counters_before={name: counters.get(name) for name in names}, forget_counters=over
            )
            try:
                await self._ports.store.commits.write(change)
            except Contended:
                await asyncio.sleep(0.005 * attempt)
                continue
            return after
        raise Unavailable("the budget of the language model cannot be written down now")

    def _until_tomorrow(self) -> float:
        now = self._clock().astimezone(self._zone)
        begin = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return max(1.0, (begin.astimezone(UTC) - now.astimezone(UTC)).total_seconds())
