"""
Words of other languages that carry grammar and courtesy alone, and what is left of a question without them.

English has its stop words in `index.analysis`. Where no spaces stand between words, a question is cut where such words
stand: "你能不能告诉我我对什么过敏" asks for "过敏". Texts keep all of theirs, so these can change freely.
"""

from __future__ import annotations

import re
from importlib.resources import files

from memoryd.knowledge.grammar.pattern import any_of

__all__ = ["CLUSTERED", "content_of", "is_clustered", "is_function_word"]

_HEAD = re.compile(r"\[(\w+)\]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SCRIPTS = re.compile("[\u3040-\u309f]+|[\u30a0-\u30ff]+|[^\u3040-\u30ff]+")  # hiragana, katakana, kanji
_HIRAGANA = re.compile("[\u3040-\u309f]")
CLUSTERED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""For a class in a pattern: Thai, Lao, Burmese, Khmer: without spaces, with marks as characters of their own."""
_IS_CLUSTERED = re.compile(f"[{CLUSTERED}]")


def is_clustered(run: str) -> bool:
    """Whether a run is of a script whose marks are characters of their own."""
    return _IS_CLUSTERED.search(run) is not None


def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in files("memoryd.knowledge.lexicon").joinpath("function_words.txt").read_text("utf-8").splitlines():
        head = _HEAD.match(line)
        if head:
            name = head[1]
        elif not line.startswith("#"):
            found.setdefault(name, []).extend(line.split())
    return found


_OF = _sections()
_HAN = re.compile(any_of(_OF["han"]))
_THAI = re.compile(any_of(_OF["thai"]))
_KANJI = re.compile(any_of(_OF["kanji"]))
SHORT, LONG = 2, 60  # characters: of a Korean word that keeps its last one, and of hiragana that is looked at
_BEFORE = re.compile(f"^(?:{any_of(_OF['hira'])})+")
_AFTER = re.compile(f"^(?:{any_of(word[::-1] for word in _OF['hira'])})+")
"""Of the letters from the last to the first."""
_JOSA = re.compile(f"(?<=.)(?:{any_of(_OF['josa'])})$")
_SURE_JOSA = re.compile("(?<=.)[를을는에]$")
"""The last of two syllables of a word where it is mostly its own: 사과, 회의, 수도."""
_HANGUL_WORDS = frozenset(_OF["hangul"])
_WORDS = frozenset(_OF["words"])
_LATIN = frozenset(_OF["latin"])


def is_function_word(word: str, *, in_latin: bool = False) -> bool:
    """
    Whether a word of a language with spaces, in lower case, carries grammar or courtesy alone.

    In Latin letters only of a text that is known not to be English: "die" and "war" are words of it too.
    """
    return word in _WORDS or (in_latin and word in _LATIN)


def content_of(run: str) -> list[str]:
    """Return the parts of a run of a question that ask for something; none where all of it is grammar."""
    if is_clustered(run):
        parts = _THAI.split(run)
    elif _HANGUL.search(run):
        parts = [] if run in _HANGUL_WORDS else [(_JOSA if len(run) > SHORT else _SURE_JOSA).sub("", run)]
        return [part for part in parts if part not in _HANGUL_WORDS]
    elif _KANA.search(run):
        parts = [part for one in _SCRIPTS.findall(run) for part in _japanese(one)]
    else:
        parts = _HAN.split(run)
    return [part for part in parts if part]


def _japanese(part: str) -> list[str]:
    """Return what is left of a run of one script: of hiragana what stands between grammar."""
    if not _HIRAGANA.match(part):
        return _KANJI.split(part)
    if len(part) > LONG:
        return [part]  # no one writes so much without a kanji
    part = _AFTER.sub("", _BEFORE.sub("", part)[::-1])[::-1]
    return [part] if len(part) > 1 else []
