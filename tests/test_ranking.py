"""What each leg of a search does, and that filters, trust and scopes hold inside every one of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryd.domain.retrieval.question import read_question
from memoryd.domain.retrieval.ranking import WEIGHTS, Ranked, corpus_of, ranked
from memoryd.domain.retrieval.search import Asked, search
from memoryd.index import legs
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.times import opened
from memoryd.model.change import Entry
from memoryd.model.embedding import TOKEN_DIMENSIONS, Embedded
from memoryd.model.memory import Kind, Memory, Source
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from tests.builders import HashEncoder, memory

SAID = Filter(kinds=frozenset({Kind.EPISODE}))
DAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
NOW = datetime(2024, 5, 15, tzinfo=UTC)


def tokens_of(text: str) -> bytes:
    """One vector a word: equal words have equal ones."""
    rows = []
    for word in text.lower().split():
        seed = int.from_bytes(word.strip("?.,!").encode()[:7])
        rows.append(np.random.default_rng(seed).choice([-14, 14], TOKEN_DIMENSIONS).astype(np.int8))
    return b"".join(row.tobytes() for row in rows)


def embedded(text: str) -> Embedded:
    places, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        places.append((at, at + len(word)))
    return Embedded(HashEncoder().encode([text], query=True)[0], tokens_of(text), tuple(places))


def indexed(made: Memory, *, with_model: bool = True) -> Entry:
    words = " ".join(analyse(indexed_memory(made)))
    if not with_model:
        return Entry(made, words)
    known = embedded(made.content)
    return Entry(made, words, known.vector, HashEncoder.fingerprint, known.tokens)


def said(*texts: str, session: str = "s", day: datetime = DAY, **more) -> list[Memory]:
    """Messages of one session, a minute apart; "Bob: text" is said by Bob."""
    made = []
    for n, text in enumerate(texts):
        speaker, separator, content = text.rpartition(": ")
        made.append(
            memory(
                content if separator else text,
                kind=Kind.EPISODE,
                event_time=day + timedelta(minutes=n),
                source=Source(speaker, session_id=session),
                **more,
            )
        )
    return made


def index_of(made: list[Memory], *, with_model: bool = True) -> ScopeIndex:
    dimensions = HashEncoder.dimensions if with_model else 0
    fingerprint = HashEncoder.fingerprint if with_model else ""
    return ScopeIndex(
        [[indexed(m, with_model=with_model) for m in made]], dimensions=dimensions, fingerprint=fingerprint
    )


def question_of(index, text, *, wanted=SAID, with_model=True, least_trust=0) -> Question:
    question = read_question(text, embedded(text) if with_model else None, wanted, NOW, [index])
    return replace(question, least_trust=least_trust)


def ranked_of(index, text, **more) -> Ranked:
    question = question_of(index, text, **more)
    return ranked([index], question)


def hits(index, text, *, limit=10, **more):
    question = question_of(index, text, **more)
    return search([index], Asked(question, limit, min_score=0.0))


def order(index, text, **more) -> list[str]:
    return [hit.memory.content for hit in hits(index, text, **more)]


@pytest.mark.parametrize("with_model", [True, False])
def test_a_reply_inherits_the_words_of_the_question_before_it(with_model):
    index = index_of(
        said(
            "Bob: Where did you hike in Norway?",
            "Ann: Near the great fjords, for days.",
            "Bob: nice",
            "Ann: yes it was",
        )
        + said("Ann: I had soup.", "Bob: I like cars.", session="t"),
        with_model=with_model,
    )
    assert "Near the great fjords, for days." in order(index, "hike Norway", with_model=with_model)[:2]


def test_no_session_inherits_from_another_and_no_statement_from_anything():
    talk = said("Where did you hike in Norway?") + said("Near the great fjords.", session="t")
    assert ["Where did you hike in Norway?"] == order(index_of(talk, with_model=False), "hike Norway", with_model=False)
    facts = [replace(one, kind=Kind.FACT) for one in said("hike in Norway", "the great fjords")]
    assert ["hike in Norway"] == order(
        index_of(facts, with_model=False), "hike Norway", with_model=False, wanted=Filter()
    )


def test_nothing_is_inherited_from_what_the_filter_leaves_out():
    talk = said("Where did you hike in Norway?", "Near the great fjords.")
    asked = replace(talk[0], source=replace(talk[0].source, thread_id="t"))
    answer = replace(talk[1], source=replace(talk[1].source, thread_id="t"))
    index = index_of([replace(asked, tags=("a",)), replace(answer, tags=("b",))], with_model=False)
    assert 2 == len(hits(index, "hike Norway", with_model=False))
    assert [] == hits(index, "hike Norway", with_model=False, wanted=replace(SAID, tags=("b",)))
    early = replace(SAID, as_of=answer.create_time)
    assert 2 == len(hits(index, "hike Norway", with_model=False, wanted=early))


def test_a_statement_stands_in_no_thread_whatever_it_was_learnt_from():
    learnt = memory("likes tea", source=Source(thread_id="t", session_id="s"))
    assert () == Filter(exclude_thread_ids=("t",), exclude_session_ids=("s",)).refusals(learnt, NOW)
    assert ("thread",) == Filter(thread_id="t").refusals(learnt, NOW)


def test_nothing_is_inherited_from_lower_trust_where_only_higher_is_looked_at():
    talk = said("Where did you hike in Norway?", "Near the great fjords.")
    index = index_of([replace(talk[0], trust=Trust.SANDBOX), talk[1]], with_model=False)
    assert [] == hits(index, "hike Norway", with_model=False, least_trust=Trust.IMPORTED.weight)


def test_a_removed_message_gives_nothing_and_its_neighbours_close_up():
    talk = said("first words", "Where did you hike in Norway?", "Near the great fjords.")
    index = index_of(talk, with_model=False)
    index.remove(talk[1].id)
    assert [] == hits(index, "hike Norway", with_model=False)
    assert 0 == index.sequences.beside(np.array([2]), -1, 3, np.ones(3, dtype=np.bool_))[0]


TEXTS = st.lists(st.sampled_from(["red", "blue", "tea", "cup", "sun", "?"]), min_size=1, max_size=4).map(" ".join)
LIVES = st.lists(
    st.tuples(
        TEXTS, st.sampled_from(["s", "t", ""]), st.integers(0, 9), st.sampled_from(["x", "y"]), st.sampled_from(Trust),
        st.sampled_from(["", "Ann", "Bob", "assistant"]),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(LIVES, TEXTS, st.sampled_from(["", "x", "y"]), st.integers(0, 2), st.booleans())
@example([("red", "s", 0, "x", Trust.HOST, ""), ("red", "s", 0, "y", Trust.HOST, "")], "red red red", "x", 0, True)
def test_what_is_left_out_changes_no_leg_of_what_is_not(lives, asked, tag, least, with_model):
    """Whatever else the refused ones say: the same documents get the same relevance."""
    made = [
        memory(text, kind=Kind.EPISODE, event_time=DAY + timedelta(days=day), tags=(label,), trust=trust,
               source=Source(speaker, session_id=session))
        for text, session, day, label, trust, speaker in lives
    ]  # fmt: skip
    wanted = replace(SAID, tags=(tag,) if tag else ())
    weight = sorted(one.weight for one in Trust)[least]
    kept = [n for n, one in enumerate(made) if wanted.admits(one, NOW) and one.trust.weight >= weight]
    other = [one if n in kept else replace(one, content="quite another on 9 May 2023") for n, one in enumerate(made)]
    text = f"{asked} Ann 9 May 2023"
    found = []
    index = index_of(made, with_model=with_model)
    question = read_question(text, embedded(text) if with_model else None, wanted, NOW, [index])
    question = replace(question, least_trust=weight)
    stats = corpus_of([index], question)
    for one in (index, index_of(other, with_model=with_model)):
        result = ranked([one], question, stats=stats)
        assert kept == result.pools[0].rows.tolist()
        found.append(result.relevance)
    assert np.allclose(*found, atol=2e-6)


def test_the_pool_of_a_large_scope_finds_what_all_documents_would(monkeypatch):
    rng = np.random.default_rng(7)
    words = [f"w{n}" for n in range(60)]
    made = [
        one
        for n in range(150)
        for one in said(
            *(" ".join(rng.choice(words, 5)) for _ in range(8)), session=f"s{n}", day=DAY + timedelta(days=n)
        )
    ]
    index = index_of(made)
    whole = [order(index, f"w{n} w{n + 7} w{2 * n}", limit=5) for n in range(20)]
    monkeypatch.setattr(legs, "SMALL", 100)
    monkeypatch.setattr(legs, "BEST", 500)
    assert whole == [order(index, f"w{n} w{n + 7} w{2 * n}", limit=5) for n in range(20)]


def test_a_day_that_is_named_lifts_what_was_said_then_and_a_text_that_names_it():
    index = index_of([
        *said("we planted tomatoes in the garden", session="a", day=datetime(2023, 5, 1, tzinfo=UTC)),
        *said("we planted roses in the garden", session="b", day=datetime(2023, 8, 1, tzinfo=UTC)),
        *said("last month we planted beans in the garden", session="c", day=datetime(2023, 6, 20, tzinfo=UTC)),
        *said("nothing was planted in the garden", session="d", day=datetime(2023, 11, 1, tzinfo=UTC)),
    ])  # fmt: skip
    both = order(index, "What was planted in the garden in May 2023?")[:2]
    assert {"we planted tomatoes in the garden", "last month we planted beans in the garden"} == {*both}
    assert "we planted roses in the garden" == order(index, "planted in the garden in August 2023")[0]
    assert "time" not in {leg.leg.value for hit in hits(index, "planted in the garden in May 2019") for leg in hit.legs}


def test_a_relative_day_is_seen_from_now():
    index = index_of([*said("the cat was at the vet", day=NOW - timedelta(days=1)),
                      *said("the cat was at the vet", session="t", day=NOW - timedelta(days=90))])  # fmt: skip
    first = hits(index, "the vet and the cat yesterday")[0].memory
    assert NOW - timedelta(days=1) == first.event_time


def test_who_is_named_alone_is_preferred_and_a_hit_of_others_says_so():
    index = index_of([
        *said("Ann: I sold my old boat", session="a"),
        *said("Bob: the weather is fine", "Bob: I read a book", "Ann: good", session="b"),
    ])  # fmt: skip
    assert "I sold my old boat" == order(index, "What did Ann sell?")[0]
    by_other = hits(index, "Did Bob sell his old boat?")
    assert [True] == [hit.said_by_other for hit in by_other if hit.memory.content == "I sold my old boat"]
    assert not any(hit.said_by_other for hit in hits(index, "Did Ann sell her old boat?"))
    assert not any(hit.said_by_other for hit in hits(index, "Did Ann or Bob sell the old boat?"))


def test_a_note_that_names_whom_the_question_names_counts_as_what_they_said():
    turns = said("Ann: the boat was sold", "Bob: the boat was sold", session="a")
    notes = [memory(f"Minutes by {who}, the boat was sold", kind=Kind.EPISODE) for who in ("Ann", "Cleo")]
    ranking = ranked_of(index_of([*turns, *notes], with_model=False), "Did Ann sell the boat?", with_model=False)
    assert [True, False, True, False] == ranking.joined("speaker").tolist()
    assert ranking.relevance[2] > ranking.relevance[3] + 0.9 * WEIGHTS.speaker


@pytest.mark.parametrize(("speaker", "trust"), [("assistant", Trust.HOST), ("Bob", Trust.HOST), ("", Trust.SANDBOX)])
@pytest.mark.parametrize("turns_trust", [Trust.HOST, Trust.SANDBOX])
def test_a_name_in_what_another_said_or_a_sandbox_noted_adds_nothing(speaker, trust, turns_trust):
    turns = said("Ann: good morning", "Bob: good morning", session="a", trust=turns_trust)
    made = memory("Ann sold the boat", kind=Kind.EPISODE, event_time=DAY, trust=trust, source=Source(speaker))
    index = index_of([*turns, made], with_model=False)
    ranking = ranked_of(index, "Did Ann sell the boat?", with_model=False)
    assert not ranking.joined("of_named").any()
    assert not ranking.joined("speaker")[2]


def test_what_the_assistant_said_counts_less_unless_it_is_asked_for():
    index = index_of(said("user: my flight leaves at nine", "assistant: my flight leaves at nine", session=""))
    assert "user" == hits(index, "when does my flight leave?")[0].memory.source.speaker
    asked = hits(index, "when did you say that my flight leaves?")
    assert pytest.approx(asked[0].score, abs=1e-3) == asked[1].score


def test_tokens_tell_apart_what_words_and_vectors_cannot():
    plain = said("a b c d", session="x")[0]
    near = said("e f g h", session="y")[0]
    vector = HashEncoder().encode(["same"], query=False)[0]
    entries = [
        Entry(plain, "word", vector, HashEncoder.fingerprint, tokens_of("moon star rock")),
        Entry(near, "word", vector, HashEncoder.fingerprint, tokens_of("tulip rose moon")),
    ]
    index = ScopeIndex([entries], dimensions=HashEncoder.dimensions, fingerprint=HashEncoder.fingerprint)
    assert [near.content, plain.content] == order(index, "tulip rose")
    bare = ScopeIndex([entries], dimensions=32, fingerprint=HashEncoder.fingerprint, with_tokens=False)
    assert b"" == bare.tokens.row(0)
    assert [plain.content, near.content] == order(bare, "tulip rose")


def test_the_best_token_is_the_largest_product_of_all():
    rng = np.random.default_rng(1)
    held = [rng.integers(-90, 90, (n, TOKEN_DIMENSIONS)).astype(np.int8) for n in (3, 0, 1, 7)]
    made = [Entry(memory(f"m{n}"), "w", None, "f", one.tobytes()) for n, one in enumerate(held)]
    index = ScopeIndex([made], dimensions=4, fingerprint="f")
    query = rng.integers(-90, 90, (5, TOKEN_DIMENSIONS)).astype(np.int8)
    expected = [
        (one.astype(int) @ query.T.astype(int)).max(axis=0) / 256**2 if len(one) else np.zeros(5) for one in held
    ]
    assert np.allclose(expected, index.tokens.best(query, np.arange(4)))


def test_a_question_that_the_model_cannot_read_is_answered_by_words_alone():
    index = index_of([replace(one, kind=Kind.FACT) for one in said("blue sky", "blue sea")])
    unread = replace(embedded("blue sea"), known_share=0.0)
    question = read_question("blue sky", unread, Filter(), NOW, [index])
    found = search([index], Asked(question, 10, 0.0))
    assert ["blue sky", "blue sea"] == [hit.memory.content for hit in found]


def test_confidence_and_recency_only_order_equals():
    doubted, sure = memory("the gate code is 12", confidence=0.2), memory("the gate code is 34", confidence=1.0)
    assert ["the gate code is 34", "the gate code is 12"] == order(
        index_of([doubted, sure]), "gate code", wanted=Filter()
    )
    assert "the gate code is 12" == order(index_of([doubted, sure]), "gate code 12", wanted=Filter())[0]


def test_what_asks_is_not_matched_as_a_word():
    def terms(text):
        return read_question(text, None, Filter(), NOW, []).terms

    assert ("volvo",) == terms("How old is the Volvo?")
    assert ("old", "car") == terms("Where is the old car?")
    assert ("long", "train") == terms("How long is the train?")  # measured: it is worth more than it costs


def test_a_text_of_the_very_day_stands_before_one_of_the_day_beside_it():
    made = [
        *said("We met the architect about the roof", session="a", day=DAY + timedelta(days=1)),
        *said("We met the architect about the roof again", session="b", day=DAY),
        *said(*[f"Nothing of note in week {n}" for n in range(12)], session="c", day=DAY - timedelta(days=90)),
    ]
    asked = f"What did we discuss with the architect on {DAY:%d} {DAY:%B}?"
    assert "We met the architect about the roof again" == order(index_of(made), asked)[0]
    made[:2] = [
        *said("I called the architect again", session="a", day=DAY + timedelta(days=1)),
        *said("The architect was late", session="b", day=DAY),
    ]
    assert "The architect was late" == order(index_of(made), f"Did I call the architect on {DAY:%d} {DAY:%B}?")[0]


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("since 1 March 2026", "2026-03-01", "2026-11-26"), ("after 1 March 2026", "2026-03-02", ""),
        ("before 1 March 2026", "", "2026-02-28"), ("by 1 March 2026", "", "2026-03-01"),
        ("as of 2026-03-01", "", "2026-03-01"), ("until 2026-03-01", "", "2026-03-01"),
        ("seit 01.03.2026", "2026-03-01", "2026-11-26"),
    ],
)  # fmt: skip
def test_days_that_are_open_to_one_side(words, first, last):
    today = date(2026, 11, 26)
    text = f"What did we decide {words}, and why?"
    (days,) = opened(text, days_named(text, today, (2026,)), today, (2026,))
    assert days.first == date.fromisoformat(first).toordinal() if first else days.first < today.toordinal() - 30_000
    assert days.last == date.fromisoformat(last).toordinal() if last else days.last > today.toordinal() + 30_000


@pytest.mark.parametrize("text", ["We walked by the river in May", "before the party on 3 May", "on 3 May", "by 9"])
def test_a_day_that_does_not_follow_such_a_word_is_closed(text):
    today = date(2026, 11, 26)
    days = days_named(text, today, (2026,))
    assert days == opened(text, days, today, (2026,))


def test_since_when_is_answered_by_what_was_said_first():
    texts = ["I have a red bike, a Gazelle", "My red bike has a flat tyre", "I have a red bike still, a Gazelle"]
    made = [one for n, text in enumerate(texts) for one in said(text, session=f"s{n}", day=DAY + timedelta(days=n))]
    index = index_of(made[::-1])
    assert texts[0] == order(index, "Since when do I have a red bike, the Gazelle?")[0]
