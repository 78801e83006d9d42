"""A long text is found by what any part of it says, and shown cut around the place that answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_client import Draft, Filter, MessageDraft, MessageSearch

from memoryd.domain.context.excerpt import MARKS, excerpt, words_of_prompt
from memoryd.domain.context.render import Line
from memoryd.index import windows
from memoryd.index.postings import K1, CorpusStats
from memoryd.index.windows import LONG, MOST_WINDOWS, SHARE, WINDOW, Loading, Windows
from memoryd.model.context import ContextItem
from memoryd.model.memory import Kind
from memoryd.model.trust import Trust
from tests.builders import NOW
from tests.support import until

FACTS = [
    "I'm allergic to peanuts", "My wife Sarah likes Italian food", "I live in Porto", "The dentist is on Monday",
    "I drink my coffee black", "My bike is blue", "We have a cat called Miso", "The cabin's wifi is SummitGuest",
    "I work at Acme as a nurse", "My brother plays the cello", "I prefer trains to planes", "The spare key is outside",
]  # fmt: skip
WALK = "We walked along the river and looked at the boats, and later the weather turned and everybody went home. "
RUN = "To restart billing you open the console, drain the queue, wait for the workers, and restart them one by one. "
TOLD = {
    "The locker word is quokka.": ["quokka", "What is the locker word?"],
    "The caretaker of the chapel is Mrs Lindqvist.": ["Lindqvist", "Who is the caretaker of the chapel?"],
    "Ticket WH-4471 tells how to unlock the ledger.": ["WH-4471", "How do I unlock the ledger?"],
    "仓库的钥匙在红色的盒子里。": ["红色的盒子", "仓库的钥匙在哪里"],
}


@pytest.mark.parametrize("size", [1_200, 3_000, 8_000])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("told", TOLD)
def test_a_long_memory_is_found_by_any_telling_word_and_question(daemon, user, size, place, told):
    before = WALK * int(place * (size - 100) / len(WALK))
    after = RUN * int((1 - place) * (size - 100) / len(RUN))
    with daemon.client(user) as memory:
        memory.add_batch([Draft(content=text) for text in FACTS])
        made = memory.add(f"{before}{told} {after}", tags=["runbook"]).memory.id
        for asked in TOLD[told]:
            assert made == memory.search(asked).hits[0].memory.id
            assert [made] == [hit.memory.id for hit in memory.search(asked, filter=Filter(tags=("runbook",))).hits]
            assert told.rstrip(".") in memory.context(asked).text
        assert made not in {hit.memory.id for hit in memory.search("Where do I live?", limit=1).hits}


BUILDING = (
    "Protokoll der Besprechung, Neubau Kita Sonnenhang\n\n"
    "Anwesend waren alle außer Frau Gruber. Zuerst ging es um das Dach. Die Ziegel kommen aus Polen. "
    + "Der Kran bleibt bis zum Sommer stehen. Der Zaun am Weg wird höher. Die Bäume im Hof werden geschnitten. " * 12
    + "\n\nTOP 7 Fundament: Beim Aushub kam Wasser, deshalb zwei Wochen Verzug."
)
MINUTES = (
    "定例会議の議事録。来月の送別会について。小川さんが幹事です。"
    + "資料は棚に戻してください。窓を閉めてから帰りましょう。机の上を片付けてください。" * 12
    + "会費は四千円に決まりました。"
)
RETRO = (
    "Retrospective of project Kestrel\n\n" + WALK * 8 + "Then the database. We looked at Redis. "
    "It would lose a session when a node dies, so it was not taken. " + RUN * 8
)
APART = {
    "Warum verzögert sich das Fundament der Kita?": BUILDING,
    "小川さんの送別会の会費はいくら？": MINUTES,
    "What became of Redis in Kestrel?": RETRO,
    "Why didn't we take Redis for Kestrel?": RETRO,
}


@pytest.mark.parametrize("asked", APART)
def test_words_that_stand_far_apart_in_one_text_find_it(daemon, user, asked):
    with daemon.client(user) as memory:
        memory.add_batch([Draft(content=text) for text in FACTS])
        for n, text in enumerate(dict.fromkeys(APART.values())):
            memory.add(text)
            memory.append(f"t{n}", [MessageDraft(content=line) for line in (text, *FACTS)])
        assert APART[asked] == memory.search(asked).hits[0].memory.content
        assert until(lambda: not memory.server_info().unembedded_message_count)
        assert APART[asked] == memory.search_messages(MessageSearch(text=asked)).hits[0].message.content


def test_a_long_text_that_holds_a_part_of_the_question_is_below_the_short_one_that_answers(daemon, user):
    long = (
        "My dentist called. " + WALK * 6 + "The phone rang twice. " + RUN * 6 + "My cat is well. The number is long. "
    )
    with daemon.client(user) as memory:
        memory.add_batch([Draft(content=text) for text in (*FACTS, long)])
        assert "We have a cat called Miso" == memory.search("What is our cat called?").hits[0].memory.content
        assert "The dentist is on Monday" == memory.search("When is the dentist?").hits[0].memory.content
        memory.add("The number of the plumber is 4471")
        assert "The number of the plumber is 4471" == memory.search("the plumber's number").hits[0].memory.content


def test_a_long_message_is_found_and_shown_around_the_place_that_answers(daemon, user):
    with daemon.client(user) as memory:
        long = WALK * 1_000 + "The vault opens with a purple ribbon. " + RUN * 1_000
        memory.append("t", [*(MessageDraft(content=text) for text in FACTS), MessageDraft(content=long)])
        until(lambda: not memory.server_info().unembedded_message_count)
        for asked in ("purple ribbon", "What does the vault open with?"):
            assert long == memory.search_messages(MessageSearch(text=asked)).hits[0].message.content
            text = memory.context(asked, thread_id="other").text
            assert "The vault opens with a purple ribbon. " in text
            assert len(text) < 8_000


def best(made: Windows, terms: Sequence[str], stats: CorpusStats, **more) -> list[float]:
    """What windows give to texts of equal score that hold all; all are trusted and pass the filter, if not given."""
    everything, scores = np.ones(stats.count, dtype=np.bool_), np.zeros(stats.count, dtype=np.float32)
    arrays = {"held": np.ones_like(scores), "mask": everything, "trusted": everything} | more
    return made.best(terms, stats, scores, **arrays).tolist()


def stats_of(count: int, *frequencies: int, **more) -> CorpusStats:
    """Of texts of 100 words or so."""
    return CorpusStats(count, 100 * count, 10_000 * count, frequencies, **more)


def windows_of(texts: Sequence[str], loaded: int = 0) -> Windows:
    """Windows of texts, of which so many are loaded and the others come late."""
    loading = Loading()
    loading.add(texts[:loaded])
    made = Windows(loading)
    for n, text in enumerate(texts[loaded:], loaded):
        made.append(n, text)
    return made


def long_of(*words: str) -> str:
    """A text of so many windows, which begin with these words and have no other in common."""
    return " ".join(f"{word} {' '.join(f'f{n}' for n in range(2 * WINDOW))}" for word in words)


def slowly(texts: Sequence[str], terms: Sequence[str], stats: CorpusStats) -> list[float]:
    """What windows give, by their definition."""
    cut = [[Counter(one.split()) for one in windows._windows(text)] for text in texts]
    rarest = sorted(range(len(terms)), key=lambda n: -stats.idf[n])
    told = [n for n in rarest if any(terms[n] in one for text in cut for one in text)][: windows.MOST_TERMS]

    def value(one: Counter, n: int) -> float:
        length = min(one.total(), stats.mean_length)
        norm = K1 * (1 - stats.b + stats.b * length / stats.mean_length)
        return stats.idf[n] / stats.mass * one[terms[n]] / (one[terms[n]] + norm)

    def most(rows: list[list[float]], beside: Sequence[float]) -> list[float]:
        return max(rows, key=lambda row: sum(max(0, a - b) for a, b in zip(row, beside, strict=True)))

    found = []
    for text in cut:
        rows = [[value(part, n) for n in told] for part in text] or [[0.0] * len(told)]
        one = max(map(sum, rows))
        second = most(rows, most(rows, [0.0] * len(told)))
        both = [max(a, b) for a, b in zip(most(rows, second), second, strict=True)]
        held = [stats.idf[n] / stats.mass for n, worth in zip(told, both, strict=True) if worth]
        found.append(max(SHARE * one, sum(both) * sum(held) if len(held) > 1 else 0.0))
    return found


WORDS = [f"w{n}" for n in range(30)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_windows_give_what_they_are_defined_to_whatever_came_late_or_is_erased(data):
    some = st.lists(st.lists(st.sampled_from(["", *WORDS]), min_size=1, max_size=5), max_size=6)
    texts = ["short", *(long_of(*words) for words in data.draw(some))]
    terms = data.draw(st.lists(st.sampled_from([*WORDS, "nothing"]), min_size=1, max_size=30, unique=True))
    often = [sum(f"{term} " in text for text in texts) for term in terms]
    stats = stats_of(len(texts), *often)
    wanted = slowly(texts, terms, stats)
    for loaded in {0, len(texts) // 2, len(texts)}:
        made = windows_of(texts, loaded)
        assert best(made, terms, stats) == pytest.approx(wanted, abs=1e-5)
        made.erase(np.arange(1, len(texts), 2))
        left = [text if n % 2 == 0 else "" for n, text in enumerate(texts)]
        assert best(made, terms, stats) == pytest.approx(slowly(left, terms, stats), abs=1e-5)


def test_of_a_question_of_many_words_the_rarest_count_that_a_text_holds():
    texts = [long_of("often", *WORDS), long_of("often", "w0")]
    terms = [*(f"nobody{n}" for n in range(10)), *WORDS, "often"]
    stats = stats_of(9, *[0] * 10, *[1] * 30, 5)
    found = best(windows_of(texts), terms, stats)[:2]
    assert found == pytest.approx(slowly(texts, terms, stats), abs=1e-6)
    assert found[0] == best(windows_of([texts[0].replace("often", "filler"), texts[1]]), terms, stats)[0]


def test_windows_that_are_loaded_are_those_that_are_appended_and_an_erased_text_leaves_none():
    texts = ["short text", " ".join(f"w{n}" for n in range(LONG + 50)), " ".join(f"v{n}" for n in range(4 * LONG))]
    loaded, grown = windows_of(texts, 3), windows_of(texts)
    for term in ("short", "w0", f"w{LONG + 49}", "v0", f"v{4 * LONG - 1}", "nothing"):
        found = best(loaded, [term], stats_of(3, 1))
        assert found == best(grown, [term], stats_of(3, 1))
        assert (term[0] in "wv") == any(found)
    assert [0.0, 0.0] == best(grown, ["v0"], stats_of(2, 1))  # what came later is not seen
    loaded.erase(np.array([2]))
    assert [0.0] * 3 == best(loaded, ["v7"], stats_of(3, 1))
    assert loaded._postings._number("v7") < 0
    assert any(best(loaded, ["w7"], stats_of(3, 1)))


def test_a_window_that_comes_while_another_thread_reads_is_not_seen():
    coming = Windows()
    coming._postings.append("a b c")  # its document is not told yet
    assert [0.0] == best(coming, ["a"], stats_of(1, 1))


def test_words_of_two_windows_count_together_by_the_share_of_the_question_that_they_hold():
    text = " ".join(["often", *(f"w{n}" for n in range(4 * LONG)), "often often often"])

    def of(*asked: str) -> float:
        return best(windows_of([text]), asked, stats_of(2, *(1 for _ in asked)))[0] if asked else 0.0

    both, one = of("w0", f"w{2 * LONG}"), of("w0", "x")
    assert both == pytest.approx(2 / SHARE * one)  # one word alone counts by its window
    assert of("often") > of("w0")
    assert of("w0", "w1") == pytest.approx(both)  # all of the question in one window
    four = of("w0", f"w{LONG}", f"w{2 * LONG}", f"w{3 * LONG}")
    assert both / 4 == pytest.approx(four)  # two of four words, half of the question; a list of all words answers none


def test_one_word_of_a_long_text_counts_as_a_window_however_often_it_stands_there():
    stats = stats_of(2, 1)
    norm = K1 * (1 - stats.b + stats.b * WINDOW / stats.mean_length)
    found = best(windows_of([long_of("kestrel", "kestrel")]), ["kestrel"], stats)
    assert [pytest.approx(SHARE / (1 + norm)), 0.0] == found


def test_more_text_between_two_parts_takes_nothing_from_them():
    stats = stats_of(9, *([1] * 4))
    apart = best(windows_of([long_of("a b", "c d")]), "abcd", stats)
    assert apart == pytest.approx(best(windows_of([long_of("a b", "b b c c", "c d")]), "abcd", stats))


ALIKE = long_of("head", "x", "tail")
MOST_READ = MOST_WINDOWS // len(list(windows._windows(ALIKE)))
"""Of such texts so many are read in windows."""


def test_of_many_long_texts_those_that_hold_most_are_read_in_windows():
    texts = [ALIKE if n == MOST_READ + 7 else long_of("head", "x", "y") for n in range(MOST_READ + 50)]
    held = np.array(["tail" in text for text in texts], dtype=np.float32) / 2 + np.float32(0.5)
    scores = best(windows_of(texts), ["head", "tail"], stats_of(len(texts), 1, 1), held=held)  # as if both were rare
    assert MOST_READ + 7 == np.argmax(scores)
    assert scores[MOST_READ + 7] > 2 * max(scores[:MOST_READ])  # by its head and its tail
    assert not any(scores[MOST_READ : MOST_READ + 7])


def test_equal_texts_are_read_in_windows_in_their_order():
    count = MOST_READ + 50
    scores = best(windows_of([ALIKE] * count), ["head", "tail"], stats_of(count, 1, 1))
    assert [scores[0]] * MOST_READ + [0.0] * 50 == scores


@pytest.mark.parametrize("away", ["mask", "trusted"])
def test_what_a_filter_refuses_or_a_sandbox_says_takes_no_place_of_a_long_text(away):
    count = MOST_READ + 50
    last = np.arange(count) == count - 1
    scores = best(windows_of([ALIKE] * count), ["head", "tail"], stats_of(count, 1, 1), **{away: last})
    assert scores[-1] > 0
    assert (scores[0] > 0) == (away == "trusted")  # those of a sandbox are read too, and apart


def test_what_a_sandbox_says_changes_nothing_of_a_trusted_text_that_holds_a_part_of_the_question():
    made, terms = windows_of([long_of("kestrel", "redis"), long_of("qwert")]), ("kestrel", "redis", "qwert")
    trusted = np.array([True, False])

    def of(often: int) -> float:
        stats = stats_of(2, 1, 1, often, unknown=0.0, vouched=(1, 1, 0))
        return best(made, terms, stats, trusted=trusted)[0] * stats.vouched_share

    assert of(1) == pytest.approx(of(0))


def test_an_excerpt_begins_before_the_words_that_stand_together():
    text = "vault " * 50 + WALK * 40 + "the vault opens with a purple ribbon " + WALK * 40
    words = words_of_prompt(["What opens the vault?", "purple"])
    shown = excerpt(text, words, 1000)
    assert "purple ribbon" in shown
    assert len(shown) <= 1000
    assert shown.endswith("…")
    assert text == excerpt(text, words, len(text)) == excerpt(text, None, len(text))
    for nothing in (None, words_of_prompt(["zebra"])):
        assert text[:900] in excerpt(text, nothing, 1000)
    assert None is words_of_prompt(["of the"])
    excerpt("purple " * 40_000, words, 1000)


@pytest.mark.parametrize("size", [500, 1000, 2000])
def test_an_excerpt_shows_the_places_of_all_words_however_far_apart(size):
    text = "Minutes of the Trieste project. " + WALK * 30 + "Any other business: the fire drill is on the ninth."
    shown = excerpt(text, words_of_prompt(["When is the fire drill in the Trieste project?"]), size)
    assert len(shown) <= size
    assert shown.startswith("Minutes of the Trieste project. We walked")
    assert shown.endswith("the fire drill is on the ninth.")


def test_an_excerpt_shows_another_place_of_the_same_word():
    text = (
        WALK * 10 + "The flat in Valun was small. " + WALK * 30 + "All in all the flat was eight hundred." + WALK * 20
    )
    shown = excerpt(text, words_of_prompt(["How much was the flat in Valun?"]), 2000)
    assert "The flat in Valun was small." in shown
    assert "the flat was eight hundred." in shown


def test_a_passage_with_a_word_that_was_not_shown_comes_before_one_that_says_the_same_again():
    again = f"The blue tram goes to Linz. {WALK * 30}"
    shown = excerpt(f"{again}{again}The fare is nine euros. {WALK}", words_of_prompt(["blue Linz tram fare"]), 600)
    assert "The fare is nine euros." in shown


def test_an_excerpt_is_no_whole_message_that_tells_a_memory():
    item = ContextItem("id", Kind.EPISODE, Trust.HOST, "t", 0, "", NOW)
    assert [False, True, True, True] == [Line("", body, "", item).is_cut for body in ("a b", "…a b", "a … b", "a b…")]


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab \n…é語"), max_size=400), st.integers(1, 200))
def test_an_excerpt_is_parts_of_its_text_in_order_and_has_its_size(text, size):
    shown = excerpt(text, words_of_prompt(["b ab bb"]), size)
    assert len(shown) <= max(size, MARKS + 1)
    if len(text) <= size:
        assert shown == text
    else:
        assert "…" in shown or not text.strip()
    at = 0
    for part in shown.split("…"):
        at = text.index(part.strip(), at) + len(part.strip())


def test_an_excerpt_near_the_end_has_its_size_and_short_words_stand_alone():
    text = WALK * 80 + "the vault opens with a purple ribbon"
    shown = excerpt(text, words_of_prompt(["What opens the vault?"]), 1000)
    assert 900 < len(shown) <= 1001
    assert text.endswith(shown.removeprefix("…"))
    for asked, said in (("Which dogs do I own?", "our dogs"), ("Whose cars?", "two cars"), ("my job?", "both jobs")):
        assert [said.split()[1][:-1]] == [m.group().rstrip("s") for m in words_of_prompt([asked]).finditer(said)]
    words = words_of_prompt(["Is Bo among the berries?"])
    assert ["Bo", "berr", "berr"] == [match.group() for match in words.finditer("Bo, a bobbin, a bond, berry, berries")]
