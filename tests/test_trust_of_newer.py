"""What a sandbox says stands as a remark beside nothing that the host has said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryd.domain.rules import Rules
from memoryd.domain.writing.judge import Known, Neighbour, Offer, judge
from memoryd.knowledge.read_statement import Reader
from memoryd.model import limits
from memoryd.model.memory import Draft
from memoryd.model.trust import Trust
from tests.builders import NOW, TEAM, memory


def test_a_sandbox_that_contests_the_host_is_no_remark_beside_it(world):
    with world.admin("nia") as host, world.inside(world.sandbox(user_id="nia", chat_ids=())) as inside:
        kept = host.add("I work as a teacher").memory
        assert (kept.id,) == inside.add("I work as a plumber").contested_ids
        hits = {hit.memory.id: hit for hit in host.search("Do I work as a teacher?", min_score=0.0).hits}
        assert hits[kept.id].newer is None
        assert "contested by the newer" not in host.context("Do I work as a teacher?").text
        host.add("I work as a baker")
        newer = host.search("Do I work as a teacher?", min_score=0.0, limit=1).hits[0].newer
        assert newer is None or newer.content == "I work as a baker"


def test_a_sandbox_makes_no_person_of_what_the_host_names(world):
    with world.admin("rae") as host, world.inside(world.sandbox(user_id="rae", chat_ids=())) as inside:
        host.add("I work at Acme")
        inside.add("My friend Acme plays the cello")
        assert "Acme" not in _people(host)
        host.add("My friend Acme lives in Ghent")
        assert "Acme" in _people(host)


def _people(memory):
    return {one.name for one in memory.people().people}


@pytest.mark.parametrize(
    ("trust", "author", "most"),
    [(Trust.SANDBOX, "mallory", limits.MAX_ENDED_OF_OTHERS), (Trust.SANDBOX, "vic", 12), (Trust.HOST, "", 12)],
)
async def test_one_statement_of_a_sandbox_ends_few_of_what_others_say_in_a_chat(trust, author, most):
    said = [f"Bob uses the car in {month}" for month in ("May", "June", "July", "March")] * 3
    held = [memory(text, scope=TEAM, trust=Trust.SANDBOX, author="vic") for text in said]
    new = memory("Bob sold his car", scope=TEAM, trust=trust, author=author)
    beside = Known(neighbours=[Neighbour(one, 0.7, same_subject=True, same_people=True) for one in held])
    offer = Offer(Draft(content=new.content), replace(new, create_time=NOW), b"")
    verdict = await judge(offer, beside, Reader(), now=NOW, rules=Rules())
    assert most == len(verdict.superseded_ids)
