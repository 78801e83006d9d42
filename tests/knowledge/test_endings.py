"""
What every verb of an end does to statements of every kind: `endings.md` shows it, and is compared with what is decided.

To write it anew after a change of `lexicon/verbs.toml` or `comparison/ending.py`, and to read the difference:
`.venv/bin/python -m tests.knowledge.test_endings > tests/knowledge/endings.md; git diff tests/knowledge/endings.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.ending import RETIRES
from memoryd.knowledge.comparison.finding import Relation
from memoryd.knowledge.lexicon.load import Verb, verb_of, verbs
from memoryd.knowledge.reading import Reading

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


def test_every_sense_of_an_end_is_decided_and_each_form_stands_in_one():
    assert {verb.sense for verb in verbs("end")} == RETIRES.keys()
    assert all(verb_of(form) is not None for verb in verbs("end") for form in verb.done)


@pytest.mark.parametrize("verb", [verb for verb in verbs("end") if verb.splits], ids=lambda verb: verb.name)
def test_a_verb_whose_object_stands_in_between_is_read_as_one(verb):
    form = verb.past[0]
    for old in ("I have a piano", "I use a piano"):
        apart = decided(old, f"I {form} my piano {verb.particle}")
        assert apart is decided(old, f"I {form} {verb.particle} my piano")


if __name__ == "__main__":
    print(shown(), end="")
