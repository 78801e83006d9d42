"""What says nothing, and what says something in as few letters."""

from __future__ import annotations

import pytest

from memoryd.knowledge.grammar.sentences import is_filler
from memoryd.knowledge.grammar.times import has_relative_time

NOTHING = [
    "ok", "OK!", "thanks!", "Thank you so much", "👍", "🎉🎉", "...", "?", "", "haha", "hahahaha", "lol", "yesss", "k",
    "sounds good", "got it", "Good morning!", "no worries", "ok thanks, bye", "hm", "how are you?", "danke!",
    "Vielen Dank", "merci beaucoup", "d'accord", "¡Gracias!", "tudo bem?", "спасибо", "да, хорошо", "شكرا", "네",
    "ありがとう", "好", "谢谢！", "wkwkwk", "哈哈哈", "ㅋㅋㅋㅋ", "that is great", "perfect, thanks",
]  # fmt: skip
SOMETHING = [
    "I'm vegan", "no gluten", "help", "42", "Rome", "call mom", "yes, in Rome", "nope, Tuesday", "ok buy milk",
    "thanks to Bob I got the job", "我吃素", "私はビーガンです", "я веган", "أنا نباتي", "Peanuts!", "not today",
    "Is the evening course all right?", "is there a problem", "the course", "no morning course",
    "never", "wow that movie", "good book", "is it there yet?", "good good good good good good good",
]  # fmt: skip


@pytest.mark.parametrize("text", NOTHING)
def test_thanks_greetings_assent_and_signs_say_nothing(text):
    assert is_filler(text)


@pytest.mark.parametrize("text", SOMETHING)
def test_what_is_short_may_say_something(text):
    assert not is_filler(text)


@pytest.mark.parametrize(
    "text",
    [
        "明天去医院", "下个月去成都出差", "三天前到了", "来週引っ越します", "昨日会いました", "다음 주에 만나요",
        "завтра еду", "два дня назад", "на следующей неделе",
        "غدا سأسافر", "الأسبوع القادم", "see you tomorrow", "nächste Woche",
    ],
)  # fmt: skip
def test_a_relative_time_is_known_in_any_of_these_languages(text):
    assert has_relative_time(text)


@pytest.mark.parametrize(
    "text", ["我喜欢茶", "東京に住んでいます", "서울에 살아요", "я живу в Риме", "أحب الشاي", "I live in Rome"]
)
def test_what_holds_on_any_day_has_none(text):
    assert not has_relative_time(text)
