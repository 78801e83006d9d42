"""The tables of rules: each row decides its examples, and no row stands where it cannot be reached."""

from __future__ import annotations

import pytest

from memoryd.knowledge.comparison.attribute_rules import ATTRIBUTE_RULES, ClaimPair
from memoryd.knowledge.comparison.rules import deciding
from memoryd.knowledge.comparison.word_rules import NAMED_RULES, SPEAKER_RULES, WordPair
from memoryd.knowledge.read_statement import Reading

NEAR = 0.9  # as cosine, so that words alone decide


def rows(rules):
    return [pytest.param(rule, old, new, id=f"{rule.name}: {old}") for rule in rules for old, new in rule.examples]


@pytest.mark.parametrize(("rule", "old", "new"), rows(ATTRIBUTE_RULES))
def test_a_rule_of_attributes_decides_its_examples(rule, old, new):
    said, known = Reading(new).statement, Reading(old).statement
    pairs = [ClaimPair(a, b, said) for a in said.claims for b in known.claims if a.attribute == b.attribute]
    assert rule in [deciding(ATTRIBUTE_RULES, pair) for pair in pairs]


@pytest.mark.parametrize(("rule", "old", "new"), rows((*NAMED_RULES, *SPEAKER_RULES)))
def test_a_rule_of_words_decides_its_examples(rule, old, new):
    newer, older = Reading(new), Reading(old)
    pair = WordPair(newer.statement, older.statement, newer.words, older.words, NEAR)
    assert rule is deciding(NAMED_RULES if pair.leads else SPEAKER_RULES, pair)


@pytest.mark.parametrize("rules", [ATTRIBUTE_RULES, NAMED_RULES, SPEAKER_RULES])
def test_every_rule_has_a_name_of_its_own_and_examples_and_the_last_always_applies(rules):
    assert len(rules) == len({rule.name for rule in rules})
    assert all(rule.examples for rule in rules)
    assert rules[-1].applies(object())
