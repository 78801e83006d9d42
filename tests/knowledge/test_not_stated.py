"""What nobody states: role play, suppositions, texts to work on, quotations; and what only looks like it."""

from __future__ import annotations

import pytest

from memoryd.knowledge.extraction.sentences import PLAYED, QUOTED, SUPPOSED, TASK, ends_play, not_stated, own_sentences

NO_STATEMENTS = {
    PLAYED: [
        "Let's role play: you are a pirate", "Pretend you are my boss", "Act as a travel agent",
        "Write me a short story about Bo",
        "You'll be the interviewer", "In my script, for my novel, she dies", "角色扮演：你是医生",
    ],
    SUPPOSED: [
        "Suppose I were vegan", "Imagine I lived in Rome. What would I eat?", "What if I moved to Oslo?",
        "If I were rich, I'd buy a boat", "Hypothetically, I quit my job", "Angenommen, ich wohne in Bern",
    ],
    TASK: [
        'Translate "I live in Berlin" into French', "Please translate: I am allergic to nuts",
        "Fix this sentence: I has a dog",
        'How do you say "I am a nurse" in Dutch?', "Übersetze: Ich wohne in Wien", "翻译：我住在北京",
    ],
    QUOTED: ['"I have a dream" - Martin Luther King', "> I hate mondays\n> and rain", "“Call me Ishmael.”"],
}  # fmt: skip
STATEMENTS = [
    "I play the cello", "I am a translator", 'My boss said "great job" today', "I write stories",
    "I imagine it will rain",
    "We have a captain called Jo", "I'm allergic to nuts", "I act in a theatre group",
    "He told me: I live in Rome", "I check my mail daily", "The story of my life: I moved to Ghent",
]  # fmt: skip


@pytest.mark.parametrize(("why", "text"), [(why, text) for why, texts in NO_STATEMENTS.items() for text in texts])
def test_what_nobody_states_is_told_with_why(why, text):
    assert why == not_stated(text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_what_somebody_states_is_left_alone(text):
    assert "" == not_stated(text)


@pytest.mark.parametrize("said", [
    "Stop the role play.", "OK, enough role play.", "End of role play.", "Back to reality: I am allergic to shrimp",
    "That was fun, role play over.", "Out of character: I moved", "/ooc I live in Bremen", "OK, no more role play.",
])  # fmt: skip
def test_a_role_play_has_an_end(said):
    assert ends_play(said)
    assert "" == not_stated(said)


def test_a_role_play_in_two_words_is_learnt_of_no_one():
    assert [] == own_sentences("Let's role play. I am allergic to kryptonite")
