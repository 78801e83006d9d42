"""What a text says of the user for good, and what only looks like it."""

from __future__ import annotations

import pytest

from memoryd.knowledge.profile import PATTERNS, Topic, beginnings, standing_of, topic_of_category
from memoryd.knowledge.text_traits import as_text, from_text, read_text, standing_in
from tests.builders import NOW

OF_USER = {
    Topic.NAME: ["My name is Robert", "the user's name is Ines", "Ich heiße Jana", "Me llamo Lucía", "我叫王芳"],
    Topic.ADDRESS: ["Call me Bo", "My pronouns are they/them", "Please call me Mrs Ode", "nenn mich Flo"],
    Topic.HEALTH: [
        "I have a hazelnut allergy", "I'm allergic to penicillin", "Allergic to penicillin", "severe nut allergy",
        "My peanut allergy is no longer mild", "I'm allergic to peanuts and I no longer have health insurance",
        "I no longer have a peanut allergy and I am allergic to shellfish",
        "My insulin is no longer covered: I am diabetic", "Because I'm allergic to nuts I no longer keep them",
        "Ich bin allergisch gegen Nüsse und bin nicht mehr verheiratet",
        "Soy alérgico a los cacahuetes y ya no tengo seguro", "I have asthma and no longer need a daily inhaler",
        "I'm no longer vegetarian but I'm allergic to nuts", "I'm deaf and no longer drive",
        "I have type 2 diabetes", "I'm in a wheelchair", "I am deaf in one ear", "Soy alérgica al marisco",
        "Je suis diabétique", "Ich habe eine Erdnussallergie",
        "Nussallergie", "我对花生过敏", "I take insulin twice a day", "I'm color-blind",
    ],
    Topic.INSTRUCTION: [
        "Please answer in short bullet points", "Never book Ryanair", "Always use metric units",
        "From now on answer in German",
        "I want you to be brief", "User prefers short answers", "Bitte antworte immer auf Deutsch",
        "Keep answers under 100 words",
        "When I ask for code, give me Python", "Don't call me sir", "Please always answer briefly",
        "Could you always answer in bullet points?", "Always answer in German because I am no longer in London",
        "Respóndeme siempre en español", "A partir de ahora responde en español", "Geef me voortaan korte antwoorden",
        "Voortaan graag kort antwoorden", "Gib mir immer nur eine kurze Antwort", "Ab jetzt antworte auf Deutsch",
        "Parle-moi toujours en français", "Désormais, réponds en français", "Rispondimi sempre in italiano",
        "D'ora in poi rispondimi in italiano", "Responda sempre em português", "Odpowiadaj zawsze po polsku",
    ],
    Topic.DIET: ["I'm vegetarian", "The user is vegan", "Diet: vegan", "I don't eat pork", "Je suis végétarienne",
                 "I can no longer eat gluten", "Ich esse kein Fleisch mehr", "I'm no longer vegan, I'm vegetarian"],
    Topic.LANGUAGE: ["I speak Dutch", "My native language is Polish", "Meine Muttersprache ist Türkisch"],
    Topic.HOME: ["I live in Porto", "We moved to Ghent", "My address is Kerkstraat 5", "Ik woon in Gent"],
    Topic.HOUSEHOLD: ["We have two kids, Emil and Lotte", "My dog is called Rex", "I live alone", "Tenemos dos hijos"],
    Topic.WORK: ["I work at Acme as a nurse", "I'm a nurse", "my job is welding", "Ich arbeite bei Bosch"],
    Topic.DISLIKE: ["I hate coriander", "I can't stand coriander", "ich mag keinen Kümmel", "Je déteste la coriandre"],
}  # fmt: skip
OF_OTHERS = [
    "My sister Nadia is allergic to nuts", "Anna is allergic to peanuts", "She is vegan", "My son has asthma",
    "Meine Schwester ist allergisch gegen Nüsse", "Tom works at Acme", "My mother lives in Ghent",
    "The user's mother has diabetes", "Uncle Joe is in a wheelchair",
]  # fmt: skip
NOTHING = [
    "My wife Sarah likes pasta", "I used to be vegetarian", "The dentist is on Monday", "Never mind", "Is he vegan?",
    "Please book a table for Friday", "I never saw that movie", "never saw that film", "We walked along the river",
    "Imagine I were vegan", "In the play I'm a doctor", "went to a blind tasting", "a double-blind trial",
    "Please always remind me tomorrow",
    "Please call me at 5 about the invoice", "My name is on the waiting list", "We live in hope",
    "x " * 400 + "I'm vegan", "", "I'm no longer vegetarian", "I'm not allergic to nuts any more",
    "We stopped being vegan",
    "Ich bin keine Vegetarierin mehr", "Je ne suis plus végétarien", "Ya no soy vegana", "Ik ben niet meer allergisch",
    "I was briefly vegan", "I no longer have diabetes", "Could you always do that?!",
    "Can you always get a refund at Ikea?", "Will you always be there for me?", "Can you never be too careful?",
    "Can you always trust a mechanic?", "I am thankfully no longer diabetic", "I am now no longer vegan",
    "The waiter said 'please always tip'", "The sign says “please never feed the ducks”", "Ab jetzt ist der Laden zu",
    "Ab jetzt schreibe ich Tagebuch", "Gib mir bitte das Salz", "Schreib immer noch an meinem Buch",
    "De ahora en adelante vivo solo", "Voortaan werk ik op dinsdag", "Geef altijd water aan de planten, zei oma",
    "Désormais je parle allemand", "Sempre que chove fico em casa", "In Zukunft wird alles besser",
    "Voortaan geef ik les op maandag", "Voortaan gebruik ik de fiets", "Voortaan schrijf ik elke dag", "Gib nie auf",
    "D'ora in poi scrivo un diario", "D'ora in poi rispondo io al telefono", "Désormais utiliser le vélo est permis",
]  # fmt: skip
OF_THINGS = [
    "The vegan restaurant on Main Street is great", "The deaf school opens at 9", "the allergy section moved upstairs",
    "Vegan leather is mostly plastic", "Anna saw the allergy ward", "Tom fixed the wheelchair",
]  # fmt: skip


@pytest.mark.parametrize(("topic", "text"), [(topic, text) for topic, texts in OF_USER.items() for text in texts])
def test_what_is_always_true_of_the_user_is_read(topic, text):
    found = standing_of(text)
    assert found is not None
    assert (topic, True) == found[:2]


@pytest.mark.parametrize("text", [*OF_OTHERS, *OF_THINGS])
def test_what_is_said_of_somebody_else_or_of_a_thing_is_not_the_user_s(text):
    found = standing_of(text)
    assert found is None or not found.of_user


@pytest.mark.parametrize("text", NOTHING)
def test_what_asks_happened_once_or_is_over_is_of_no_profile(text):
    assert None is standing_of(text)


def test_looking_words_up_finds_what_the_patterns_find():
    for text in [*(one for texts in OF_USER.values() for one in texts), *OF_OTHERS, *NOTHING, *OF_THINGS]:
        for topic in (one for one in Topic if one is not Topic.PERSONAL):
            lines = PATTERNS[topic.name]
            assert (lines.search(text) is None) == (lines.search(text, beginnings(text)) is None), text


def test_the_most_important_topic_of_the_user_comes_first():
    assert (Topic.HEALTH, True, True) == standing_of("I live in Porto. I'm allergic to nuts. Tom is called Tom.")
    assert (Topic.HOME, True, True) == standing_of("My sister is diabetic. I live in Porto.")


def test_it_is_kept_with_what_else_is_read_of_a_statement_and_of_no_message():
    read = read_text("I'm vegetarian since 2019", NOW.date(), is_said=False, is_dated=False)
    assert (Topic.DIET, True, False) == standing_in(read.standing)
    assert read == from_text(as_text(read, is_said=False, is_dated=False), is_said=False, is_dated=False)
    said = read_text("I'm vegetarian", NOW.date(), is_said=True, is_dated=True)
    assert 0 == said.standing
    assert said == from_text(as_text(said, is_said=True, is_dated=True), is_said=True, is_dated=True)
    assert None is from_text("100 0 4", is_said=False, is_dated=False)  # of a version before there were profiles
    assert (0, 4) == from_text("111 0 4", is_said=True, is_dated=True)[:2]


def test_a_category_is_known_in_any_spelling():
    assert [Topic.INSTRUCTION] * 3 == [topic_of_category(name) for name in ("Response style", "RULES", "rules")]
    assert None is topic_of_category("recipes")


@pytest.mark.parametrize(
    "text",
    [
        "Translate: I am allergic to bees", "I am allergic to homework, just kidding",
        "Suppose I were vegan: what then?", "Please correct this: I'm allergic to nuts", "I'm allergic to mornings jk",
    ],
)  # fmt: skip
def test_what_is_no_statement_is_in_no_profile(text):
    assert standing_of(text) is None
    assert standing_of("I am allergic to bees") is not None


@pytest.mark.parametrize(
    ("text", "is_of_user"),
    [
        ("had lunch with aoife and she told me she's pregnant", False),
        ("my mate says he's coeliac", False),
        ("I learnt that he has type 1 diabetes", False),
        ("I told you they're both vegetarian", False),
        ("talked to Ruth and she thinks I'm vegan", False),
        ("I dreamt that I'm blind", False),
        ("I told her that I'm pregnant", True),
        ("she knows I'm vegetarian", True),
        ("He drives, as I'm blind", True),
        ("they diagnosed me with epilepsy", True),
    ],
)
def test_of_whom_something_is_told_decides_whoever_else_is_there(text, is_of_user):
    assert is_of_user is standing_of(text).of_user
