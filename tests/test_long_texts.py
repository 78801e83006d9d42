"""A long text is found by what any part of it says, and shown cut around the place that answers."""

from __future__ import annotations

import numpy as np
import pytest
from memory_client import Draft, Filter, MessageDraft, MessageSearch

from memoryd.domain.context.excerpt import excerpt, words_of_prompt
from memoryd.index.postings import CorpusStats
from memoryd.index.windows import LONG, MOST_PAIRED, SHARE, Loading, Windows
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


def found(windows: Windows, term: str, count: int) -> list[float]:
    stats = CorpusStats(count, 100 * count, 10_000 * count, (1,))
    return windows.best((term,), stats, np.zeros(count, dtype=np.float32)).tolist()


def test_windows_that_are_loaded_are_those_that_are_appended_and_an_erased_text_leaves_none():
    texts = ["short text", " ".join(f"w{n}" for n in range(LONG + 50)), " ".join(f"v{n}" for n in range(4 * LONG))]
    loading = Loading()
    loading.add(texts)
    loaded, grown = Windows(loading), Windows()
    for n, text in enumerate(texts):
        grown.append(n, text)
    for term in ("short", "w0", f"w{LONG + 49}", "v0", f"v{4 * LONG - 1}", "nothing"):
        assert found(loaded, term, 3) == found(grown, term, 3)
        assert (term[0] in "wv") == any(found(grown, term, 3))
    assert found(loaded, "v0", 2) == [0.0, 0.0]  # what came later is not seen
    loaded.erase(np.array([2]))
    assert [0.0] * 3 == found(loaded, "v7", 3)
    assert loaded._postings._number("v7") < 0
    assert any(found(loaded, "w7", 3))


def test_words_of_two_windows_count_together_by_the_share_of_the_question_that_they_hold():
    text = " ".join(["often", *(f"w{n}" for n in range(4 * LONG)), "often often often"])
    windows = Windows()
    windows.append(0, text)

    def best(*asked: str) -> float:
        stats = CorpusStats(2, 200, 20_000, (1,) * len(asked))
        return float(windows.best(asked, stats, np.zeros(1, dtype=np.float32))[0])

    both, one = best("w0", f"w{2 * LONG}"), best("w0", "x")
    assert both == pytest.approx(2 / SHARE * one)  # one alone counts by its window, as half of a half is less
    assert best("often") > best("w0")
    four = best("w0", f"w{LONG}", f"w{2 * LONG}", f"w{3 * LONG}")
    assert both / 4 == pytest.approx(four)  # two of four words, half of the question; a list of all words answers none


def test_of_many_long_texts_those_that_hold_most_are_read_in_two_windows():
    filler = " ".join(f"w{n}" for n in range(3 * LONG))
    texts = [f"head {filler} tail" if n == 7 else f"head {filler}" for n in range(MOST_PAIRED + 50)]
    windows = Windows()
    for n, text in enumerate(texts):
        windows.append(n, text)
    count = len(texts)
    stats = CorpusStats(count, 100 * count, 10_000 * count, (1, 1))  # as if both were rare
    scores = windows.best(("head", "tail"), stats, np.zeros(count, dtype=np.float32))
    assert 7 == scores.argmax()
    assert scores[7] > 2 * max(scores[:7])  # by its head and its tail


def test_an_excerpt_begins_before_the_words_that_stand_together():
    text = "vault " * 50 + WALK * 40 + "the vault opens with a purple ribbon " + WALK * 40
    words = words_of_prompt(["What opens the vault?", "purple"])
    shown = excerpt(text, words, 1000)
    assert shown.startswith("…")
    assert shown.index("purple ribbon") < 200
    assert text == excerpt(text, words, len(text)) == excerpt(text, None, 10)
    assert text == excerpt(text, words_of_prompt(["zebra"]), 1000)
    assert None is words_of_prompt(["of the"])
    excerpt("purple " * 40_000, words, 1000)


def test_an_excerpt_near_the_end_has_its_size_and_short_words_stand_alone():
    text = WALK * 80 + "the vault opens with a purple ribbon"
    shown = excerpt(text, words_of_prompt(["What opens the vault?"]), 1000)
    assert 900 < len(shown) <= 1001
    assert text.endswith(shown.removeprefix("…"))
    for asked, said in (("Which dogs do I own?", "our dogs"), ("Whose cars?", "two cars"), ("my job?", "both jobs")):
        assert [said.split()[1][:-1]] == [m.group().rstrip("s") for m in words_of_prompt([asked]).finditer(said)]
    words = words_of_prompt(["Is Bo among the berries?"])
    assert ["Bo", "berr", "berr"] == [match.group() for match in words.finditer("Bo, a bobbin, a bond, berry, berries")]
