"""The texts of tests/readers/voices: each is whole, and no two people say the same."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.readers.voices import Voice, faults, voices


@pytest.mark.parametrize("voice", voices(), ids=lambda voice: voice.id)
def test_a_voice_is_as_its_format_says(voice: Voice):
    assert [] == list(faults(voice))


def test_no_two_people_say_the_same():
    said = Counter(one.text.casefold() for voice in voices() for one in (*voice.store, *voice.later))
    assert [] == [text for text, count in said.items() if count > 1]


def test_about_a_fifth_of_the_voices_is_judged_with():
    apart = sum(voice.is_apart for voice in voices())
    assert 0.15 < apart / len(voices()) < 0.25
