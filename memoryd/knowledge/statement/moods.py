"""How something is said: in doubt, as a change, as an end, as something that happened; patterns over whole texts."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled, whole

__all__ = ["ADDING", "CHANGING", "HABITUAL", "HAPPENED", "HEDGED", "NOT_ENDED", "TAIL_CLAUSE", "TURNING"]

TAIL_CLAUSE = compiled("{tail_clause}")
"""A reason at the end: the doubt in it is no doubt of what stands before it."""
HEDGED = re.compile(rf"\?|^sure,|{whole('hedged').pattern}", re.IGNORECASE)
CHANGING = whole("changing")
TURNING = whole("turning")
NOT_ENDED = whole("not_ended")
HAPPENED = whole("happened")
ADDING = whole("adding")
HABITUAL = whole("habitual")
