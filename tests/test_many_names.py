"""Statements and people with very many names."""

from __future__ import annotations

from memoryd.model import limits
from tests.builders import Local, ports_over, ram_store


async def test_a_statement_that_is_said_again_and_again_names_no_more_entities_than_one_may(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        for n in range(limits.MAX_MENTIONS + 3):
            said = await alice.add("Sally Miller runs")
            name = f"Zoe N{'aeiou'[n % 5]}{'lmnrst'[n // 5]}er"
            await alice.add(f"My colleague {name} sleeps")
            await alice.merge_entities("Sally Miller", name)  # from now on she is somebody else
        stored = await ports.store.locate(said.memory.id)
        assert limits.MAX_MENTIONS == len({mention.entity_id for mention in stored.mentions})
        assert ["Sally Miller"] * limits.MAX_MENTIONS == [mention.text for mention in stored.mentions]
