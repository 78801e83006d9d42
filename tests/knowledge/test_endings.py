"""
What every verb of an end does to statements of every kind: `endings.md` shows it, and is compared with what is decided.

To write it anew after a change of `lexicon/verbs.toml` or `comparison/ending.py`, and to read the difference:
`.venv/bin/python -m tests.knowledge.test_endings && git diff tests/knowledge/endings.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.ending import RETIRES
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.lexicon.load import Verb, verbs
from memoryd.knowledge.read_statement import Reading

ENDED = Path(__file__).with_name("endings.md")
FRAMES = (
    ("thing", "I have a piano", "I {} my piano"),
    ("detail", "My piano is a Yamaha", "I {} my piano"),
    ("value", "My piano is a Yamaha", "I {} my Yamaha"),
    ("tool", "I use Evernote", "I {} Evernote"),
    ("paid", "I have a Netflix subscription", "I {} my Netflix subscription"),
    ("plan", "I am flying to Japan in May", "I {} the flight to Japan"),
    ("job", "I work at Acme", "I {} Acme"),
    ("study", "I study at Leiden", "I {} Leiden"),
    ("sport", "I play tennis", "I {} tennis"),
    ("drink", "I drink coffee", "I {} coffee"),
    ("taste", "I like jazz", "I {} jazz"),
    ("love", "My girlfriend is Anna", "I {} Anna"),
    ("kin", "My sister is Anna", "I {} Anna"),
    ("home", "I live in Oslo", "I {} Oslo"),
)
GUARDS = (
    ("not", "I have a piano", "I {not} my piano"),
    ("nearly", "I have a piano", "I {nearly} my piano"),
    ("perhaps", "I have a piano", "Maybe I {} my piano"),
    ("asked", "I have a piano", "Have I {} my piano?"),
    ("other's", "I have a piano", "My brother {} his piano"),
    ("one of", "I have a piano", "I {} a piano"),
    ("another", "I have a piano", "I {} my old piano"),
    ("other", "I have a piano", "I {} my car"),
)
"""What is no end of it: nothing here may retire."""
SHOWN = {Relation.CHANGED: "**ends**", Relation.DOUBTFUL: "doubt", Relation.APART: "·", Relation.SAME: "same"}
LED = {
    "am ": ("tired", "sick", "bored", "fed", "weary", "done with", "through with"),
    "was ": ("laid off ", "fired ", "made redundant", "let go from"),
}
"""Forms that stand behind another verb."""
LIKE = 0.5  # as cosine: as much as two short statements with a word in common have


def forms(verb: Verb) -> tuple[str, dict[str, str]]:
    """The form that stands behind "I", and how it is denied."""
    form = f"{(verb.past or verb.participle)[0]} {verb.particle}".strip()
    has_been = f"{(verb.participle or verb.past)[0]} {verb.particle}".strip()
    led = next((be for be, some in LED.items() if form.startswith(some)), "")
    denied, nearly = (f"{led}not {form}", f"{led}nearly {form}") if led else (f"have not {has_been}", f"nearly {form}")
    return f"{led}{form}", {"not": denied, "nearly": nearly}


def told(verb: Verb, newer: str) -> str:
    form, denied = forms(verb)
    return newer.format(form, **denied)


def decided(older: str, newer: str) -> Relation:
    return compare(Reading(newer), Reading(older), similarity=LIKE).relation


def shown() -> str:
    lines = [
        "What each verb of an end does; written by `test_endings.py`, which says how. **ends**: the older statement is",
        "retired; doubt: it is contested; ·: nothing. Verbs of one sense that do the same stand in one row.",
        "",
        "| of | older statement | newer statement |",
        "|---|---|---|",
        *(
            f"| {name} | {older} | {newer.format('…', **{'not': 'have not …', 'nearly': 'nearly …'})} |"
            for name, older, newer in (*FRAMES, *GUARDS)
        ),
    ]
    for sense in RETIRES:
        lines += ["", f"## {sense.removeprefix('end.').replace('_', ' ')}", ""]
        lines += [
            f"| | {' | '.join(name for name, *_ in (*FRAMES, *GUARDS))} |",
            "|---" * (len(FRAMES + GUARDS) + 1) + "|",
        ]
        rows: dict[str, list[str]] = {}
        for verb in verbs(sense):
            outcomes = (SHOWN[decided(older, told(verb, newer))] for _, older, newer in (*FRAMES, *GUARDS))
            rows.setdefault(" | ".join(outcomes), []).append(forms(verb)[0])
        lines += [f"| {', '.join(some)} | {outcomes} |" for outcomes, some in rows.items()]
    return "\n".join(lines) + "\n"


def test_every_verb_does_what_the_table_shows():
    assert ENDED.read_text(encoding="utf-8") == shown()


def test_what_is_no_end_retires_nothing():
    retired = [
        (verb.name, newer)
        for verb in verbs("end")
        for _, older, newer in GUARDS
        if decided(older, told(verb, newer)) is Relation.CHANGED
    ]
    assert [] == retired


NO_ENDS = (
    ("I live in Leeds", "We moved to Zoom for our meetings"),
    ("I live in Leeds", "I moved to Marketing last month"),
    ("I live in Leeds", "I'm living in Bristol for two weeks"),
    ("I live in Leeds", "I live in Bristol in my dreams"),
    ("I live in Leeds", "I'm living in a tent at Glastonbury until Monday"),
    ("I work at Deloitte", "I left Deloitte at 6 and met Sam for dinner"),
    ("I drink beer", "I gave up beer for January"),
    ("I play the cello", "I gave up the cello for Lent, back at it on Easter Monday"),
    ("I drink beer", "I quit drinking beer for a month"),
    ("I drink coffee", "I stopped drinking coffee after 3pm"),
    ("I have a Netflix subscription", "I cancelled Netflix for the summer, back in September"),
    ("I'm dating Marco", "Marco and I broke up for about an hour, we're fine"),
    ("I'm dating Marco", "Marco and I broke up once, years ago"),
    ("I'm single", "I got married in a dream last night"),
    ("My name is Bob", "I gave my name to the clerk and walked away"),
    ("I have a coat", "I threw my coat on and walked out"),
    ("My phone number is 555-1234", "I gave my phone number to the woman who signed me up"),
    ("I have a car", "I gave my car to the garage and got it back"),
    ("I have a laptop", "I returned my laptop to IT for repair"),
    ("I'm allergic to peanuts", "I threw out the peanuts"),
    ("I have a bad back", "I threw out my back"),
    ("My birthday is on 3 May", "I cancelled my birthday"),
    ("I have a phone", "My phone is off"),
    ("I prefer aisle seats", "I exchanged seats by accident"),
    ("I like books", "I exchanged books with Tom"),
    ("I use a laptop", "I unplugged my laptop"),
    ("I commute by bike", "I came off my bike"),
    ("I have a garage", "I backed out of the garage"),
    ("I play football", "I kicked the football"),
    ("I am a doctor", "I left my doctor"),
    ("I have two kittens", "I gave away my kitten"),
    ("I have 3 cars", "I sold my car"),
    ("I'm flying to Japan on Monday", "I cancelled my appointment on Monday"),
    ("I have a piano", "I m\u0131splaced my piano"),
)


@pytest.mark.parametrize(("older", "newer"), NO_ENDS)
def test_what_is_for_a_while_of_another_or_of_something_else_retires_nothing(older, newer):
    assert decided(older, newer) is not Relation.CHANGED


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I have a piano", "I gave my piano away"),
        ("I have a piano", "I sold my piano yesterday"),
        ("I drink coffee", "I quit drinking coffee"),
        ("My flight to Oslo is on Friday", "My flight to Oslo is cancelled"),
        ("I have a Netflix subscription", "I cancelled Netflix last month"),
        ("My father plays the cello", "My father died"),
        ("I have 3 cars", "I sold my cars"),
        ("I have mushrooms every day", "I quit eating mushrooms back in January"),
    ],
)
def test_a_plain_end_is_noticed(older, newer):
    assert decided(older, newer) in {Relation.CHANGED, Relation.DOUBTFUL}


@pytest.mark.parametrize("verb", [verb for verb in verbs("end") if verb.splits], ids=lambda verb: verb.name)
def test_a_verb_whose_object_stands_in_between_is_read_as_one(verb):
    form = verb.past[0]
    for old in ("I have a piano", "I use a piano"):
        apart = decided(old, f"I {form} my piano {verb.particle}")
        assert apart is decided(old, f"I {form} {verb.particle} my piano")


if __name__ == "__main__":
    ENDED.write_text(shown(), encoding="utf-8")
