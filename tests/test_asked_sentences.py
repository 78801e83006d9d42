"""A question is found wherever it stands in a message; courtesies ask nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from memory_client import Draft, MessageDraft, MessageSearch

from memoryd.domain.retrieval.search import ScoredMemory, said_once
from memoryd.knowledge.grammar.sentences import asked_sentences, is_courtesy, sentences_of, states_nothing
from tests.builders import memory as stated
from tests.support import until

KNOWN = {
    "I'm allergic to peanuts": "What should I avoid eating?",
    "The spare key is under the blue flower pot": "Where is the spare key?",
    "My sister Nadia plays the cello": "Which instrument does my sister play?",
    "The dentist appointment is on 4 May": "When do I see the dentist?",
    "I parked the car on level minus two": "Where did I park?",
    "Our neighbour feeds the cat while we travel": "Who looks after the cat?",
    "The wifi of the cabin is called SummitGuest": "What is the wifi of the cabin called?",
    "I take my coffee without sugar": "How do I drink my coffee?",
}
BEFORE = "The tram was late again this morning. I made a big pot of lentil soup for lunch."
AFTER = "I really should go to bed earlier. My bed squeaks and the tram is loud."


@pytest.fixture(scope="module")
def told(daemon):
    with daemon.client("asks-in-sentences") as memory:
        memory.add_batch([Draft(content=text) for text in KNOWN])
        memory.add_batch([Draft(content=f"Note {n}: the {word} was fine") for n, word in enumerate(WORDS)])
        yield memory


WORDS = ["theatre", "river", "carpet", "museum", "lecture", "garden", "bakery", "harbour", "market", "bridge"]


@pytest.mark.parametrize(("text", "question"), KNOWN.items())
def test_a_question_between_other_sentences_is_found_as_if_it_stood_alone(told, text, question):
    alone = told.search(question, limit=3).hits[0]
    assert text == alone.memory.content
    found = told.search(f"Hi there! {BEFORE} {question} {AFTER} Thanks a lot!", limit=3).hits
    assert (text, alone.score) == (found[0].memory.content, found[0].score)
    assert text in told.context(f"{BEFORE} {question} {AFTER}").text


def test_two_questions_are_both_answered_and_scores_never_rise(told):
    first, second = [*KNOWN.items()][:2]
    hits = told.search(f"{first[1]} {second[1]}", limit=5).hits
    assert {first[0], second[0]} <= {hit.memory.content for hit in hits[:2]}
    miss = told.search(f"{first[1]} {second[1]}", limit=1, why_not=hits[1].memory.id).miss
    assert (hits[1].score, ("limit",)) == (miss.score, miss.reasons)


@pytest.mark.parametrize("said", ["Hello! Thanks so much.", "Good morning, Anna. Sorry for the late reply!", "Danke!"])
def test_courtesies_bring_nothing_into_a_context_and_are_searched_where_somebody_searches_them(told, said):
    assert [] == [one for one in told.context(said).sections if one.name == "relevant_memory"]
    told.search(said)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("What should I eat?", ("What should I eat?",)),
        ("Hi! I moved to Lisbon, e.g. near Dr. Silva. What should I pack? Thanks!",
         ("I moved to Lisbon, e.g. near Dr. Silva.", "What should I pack?")),
        ("version 2.4.1 of api.v2 is out", ("version 2.4.1 of api.v2 is out",)),
        ("你好！我住在哪里？我喜欢什么颜色？", ("我住在哪里？", "我喜欢什么颜色？")),
        ("Where? When? Who is Ana?", ("Where? When?", "Who is Ana?")),
        ("Thanks!", ()),
        ("line one\nline two", ("line one", "line two")),
    ],
)  # fmt: skip
def test_a_message_is_asked_sentence_by_sentence(text, asked):
    assert asked == asked_sentences(text)


def test_a_long_message_is_asked_in_few_parts_that_leave_nothing_out():
    said = [f"Sentence {n} is here{'?' if n % 7 == 0 else '.'}" for n in range(60)]
    parts = asked_sentences(" ".join(said))
    assert len(parts) <= 8
    assert " ".join(said) == " ".join(parts)
    assert said[56] in parts


COURTESIES = [
    "Hi Anna!", "Good morning, everyone.", "Thanks for reminding me about the dentist.", "Sorry for the late reply.",
    "Have a lovely weekend!", "Take care!", "Quick question:", "How are you doing today?", "See you tomorrow",
    "Hope you are well.", "I apologise for the confusion", "Best regards", "Long time no see!", "Can you help me?",
    "Thanks in advance!", "Thank you so much, Anna", "Hope this helps", "Nice to hear from you again",
]  # fmt: skip
NONE = [
    "What should I cook?", "I have a sister.", "Sorry, where does Anna live?", "I hope to visit Japan", "I trust Bob",
    "How have you been sleeping?", "Thank you for the recipe, what was in it?", "hello world program",
    "Thanks for the answer but who is Tom", "Thanks for that can you also tell me when Anna arrives",
    "Sorry I hate mushrooms",
    "Thank you for the list, now add milk", "Sorry for the typo: the PIN is 4411", "Sorry about that, it's 5 not 6.",
    "Sorry for the confusion, I meant Berlin.", "Thanks for telling me the password is hunter2.", "Hi, I'm Peter.",
    "Hope you remember that I'm gluten free", "I appreciate it when you answer in German.", "Have a good trip to Oslo",
    "See you next week in Oslo", "Take care of Rex", "Nice to meet you in Lyon",
    "Sorry about yesterday, I have migraine",
    "Can you help me with my taxes?", "I'm vegan", "No longer", "Question the witness about the knife",
]  # fmt: skip


def test_what_only_greets_thanks_or_apologises_is_told_from_what_says_something():
    assert [] == [one for one in COURTESIES if not is_courtesy(one)]
    assert [] == [one for one in NONE if is_courtesy(one)]


def test_a_repeated_mark_is_split_in_the_time_of_any_text():
    assert 20_000 == len([*sentences_of("so. " * 20_000)])
    asked_sentences("? " * 20_000)
    is_courtesy("hi " * 33)


def test_what_several_questions_found_is_said_once_under_the_best():
    def found(name, score, *same):
        return ScoredMemory(score, score, 0.0, stated(name, id=name), same)

    # one question found "a" and collapsed "b" under it, the other the other way round; "c" says the same as "b"
    hits = [found("b", 0.9, "a"), found("d", 0.8), found("a", 0.7, "b", "c"), found("c", 0.6)]
    assert [("b", ("a", "c")), ("d", ())] == [(hit.memory.id, hit.same_ids) for hit in said_once(hits)]


STATE_NOTHING = [
    "What other hobbies have you found?", "Take care!", "Hey! How are you? What did you cook?", "Thanks, bye!",
    "Wow! Did you see that band?", "Good morning!", "有什么新的爱好吗？",
]  # fmt: skip
STATE = [
    "I found pottery, and you?", "How is my dog Rex?", "Did you see the band of 1999?", "We moved. What about you?",
    "Do you know that " + "the long and winding road " * 5 + "ends?", "The key is under the pot",
    "Thanks, I hate mushrooms",
]  # fmt: skip


def test_a_text_that_only_asks_or_greets_states_nothing():
    assert [] == [text for text in STATE_NOTHING if not states_nothing(text)]
    assert [] == [text for text in STATE if states_nothing(text)]


def test_a_turn_that_only_asks_or_greets_stands_below_all_that_state_something(daemon):
    with daemon.client("asks-in-turns") as memory:
        turns = [
            "Which hobbies did you take up?", "I took up pottery last spring", "Which hobbies did you take up lately?",
            "My hobbies are chess and climbing", "What other hobbies have you found?", "Take care of your hobbies!",
            "Hobbies keep the brain young, says my doctor",
        ]  # fmt: skip
        roles = ("assistant", "user")
        memory.append("t", [MessageDraft(content=text, role=roles[n % 2]) for n, text in enumerate(turns)])
        until(lambda: not memory.server_info().unembedded_message_count)  # until then, words alone order the hits
        asked = MessageSearch(text="Which hobbies did you take up?", before=0, after=0, min_score=0.0, top_k=10)
        found = memory.search_messages(asked).hits
        said = [hit.message.content for hit in found]
        asks = [states_nothing(text) for text in said]
        assert sorted(asks) == asks
        assert {True, False} == set(asks)
        assert sorted((hit.score for hit in found), reverse=True) == [hit.score for hit in found]
        for count in (1, 2):  # the first hits are the same, however few are wanted
            few = memory.search_messages(replace(asked, top_k=count)).hits
            assert said[:count] == [hit.message.content for hit in few]


def test_of_few_memories_the_day_may_be_all_that_answers(daemon, user):
    with daemon.client(user) as memory:
        memory.add("Ana broke her wrist", kind="event", event_time=datetime(2026, 11, 18, 12, tzinfo=UTC))
        assert 1 == len(memory.search("What happened on November 18?").hits)
        assert 0 == len(memory.search("What happened on November 8?").hits)
