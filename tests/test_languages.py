"""Facts are found in other languages, and where the model cannot read them, no worse than by words alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memoryd.domain.reading.question import read_question
from memoryd.domain.reading.ranking import ranked
from memoryd.domain.reading.relevance import above_floor
from memoryd.embedding.packaged import builtin_encoder
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import Entry
from memoryd.model.query import Filter
from tests.builders import memory
from tests.knowledge.languages import LANGUAGES, WEAK

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOISE = {
    "Chinese": "写一首诗",
    "Japanese": "円周率を計算して",
    "Korean": "프로그램 짜줘",
    "Russian": "Напиши стихи",
    "Arabic": "اكتب قصيدة",
    "German": "Erzähl mir einen lustigen Witz",
}


@pytest.fixture(scope="module")
def encoder():
    return builtin_encoder()


@pytest.fixture(scope="module")
def indexes(encoder):
    made = {}
    for language, pairs in LANGUAGES.items():
        entries = []
        for fact, _ in pairs:
            one, known = memory(fact), encoder.read([fact], query=False)[0]
            entries.append(Entry(one, " ".join(analyse(indexed_memory(one))), known.vector, "f", known.tokens))
        made[language] = ScopeIndex([entries], dimensions=encoder.dimensions, fingerprint="f")
    return made


def reciprocal_ranks(index, pairs, encoder) -> list[float]:
    """Of each question; 0 where its fact is not found, or is below the floor."""
    found = []
    for fact, asked in pairs:
        embedded = None if encoder is None else encoder.read([asked], query=True)[0]
        question = read_question(asked, embedded, Filter(), NOW, [index])
        of = ranked([index], question, index.corpus(question.terms))
        order = (-of.place).argsort(kind="stable")
        kept = order[above_floor(of, order)]
        texts = [index.memory_at(int(of.pools[0].rows[n])).content for n in kept]
        found.append(1 / (texts.index(fact) + 1) if fact in texts else 0.0)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_fact_that_answers_stands_first(language, encoder, indexes):
    ranks = reciprocal_ranks(indexes[language], LANGUAGES[language], encoder)
    assert sum(ranks) / len(ranks) >= 0.9, dict(zip(LANGUAGES[language], ranks, strict=True))


@pytest.mark.parametrize("language", WEAK)
def test_a_model_that_cannot_read_a_script_makes_nothing_worse(language, encoder, indexes):
    pairs = LANGUAGES[language]
    assert all(encoder.read([asked], query=True)[0].known_share < 0.2 for _, asked in pairs)
    with_model = reciprocal_ranks(indexes[language], pairs, encoder)
    assert sum(with_model) >= sum(reciprocal_ranks(indexes[language], pairs, None))


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - set(WEAK)))
def test_what_the_model_reads_in_pieces_counts_in_full(language, encoder):
    assert all(encoder.read([asked], query=True)[0].known_share == 1.0 for _, asked in LANGUAGES[language])


@pytest.mark.parametrize("language", NOISE)
def test_what_shares_nothing_finds_nothing(language, encoder, indexes):
    index, asked = indexes[language], NOISE[language]
    question = read_question(asked, encoder.read([asked], query=True)[0], Filter(), NOW, [index])
    of = ranked([index], question, index.corpus(question.terms))
    assert not above_floor(of, (-of.place).argsort(kind="stable")).any()


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        ("Where did I put my passport last week?", 1.0),
        ("wehre do I kep the sapre kee?", 1.0),  # misspelt
        ("typsecript compilation config", 1.0),
        ("mongod", 1.0),
        ("Erzähl mir einen lustigen Witz", 0.0),
        ("Qu'est-ce que je ne mange jamais à Noël ?", 0.5),
        ("Где лежит запасной ключ?", 0.0),
        ("黑猫在哪里睡觉", 0.0),
        ("?", 1.0),
    ],
)
def test_scores_go_by_words_where_the_language_is_not_english(asked, share, encoder):
    question = read_question(asked, encoder.read([asked], query=True)[0], Filter(), NOW, [])
    assert abs(question.judged_share - share) < 0.5, question.judged_share
