"""The lexicon: each table is read, each name stands once and is used, and no words stand anywhere else."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from memoryd.knowledge.grammar import pattern
from memoryd.knowledge.grammar.pattern import any_of, compiled, expanded
from memoryd.knowledge.grammar.relations import _by_word
from memoryd.knowledge.lexicon import load
from memoryd.knowledge.lexicon.load import regular, table, verb_of, verbs, words
from memoryd.knowledge.statement.claim import _read as read_predicates
from memoryd.knowledge.statement.rewrites import _read as read_rewrites

LAZY = [*pattern._LAZY]  # before a test makes bad ones

KNOWLEDGE = Path(expanded.__code__.co_filename).parents[1]
LEXICON = KNOWLEDGE / "lexicon"
TABLES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in LEXICON.glob("*.toml")}
PARTS = ("frames.part", "nouns", "time", "grammar", "extraction", "profile.part")
"""Tables whose names stand for something in patterns."""
MOST_WORDS = 12  # of a text in the code that are no sentence: more are a list
MODULES = sorted(path for path in KNOWLEDGE.rglob("*.py") if path.parent != LEXICON and "secrets" not in path.parts)
"""`secrets` has patterns of credentials, which are no words."""


def names() -> list[tuple[str, str]]:
    return [(part, name) for part in PARTS for name in table(part)]


def test_each_name_stands_once():
    assert [] == [name for name, times in Counter(name for _, name in names()).items() if times > 1]


@pytest.mark.parametrize(("part", "name"), names())
def test_each_name_is_a_pattern(part, name):
    compiled(f"{{{name}}}")


def test_each_name_is_used():
    modules = (*KNOWLEDGE.rglob("*.py"), *(KNOWLEDGE.parent / "entities").glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in (*KNOWLEDGE.rglob("*.toml"), *KNOWLEDGE.rglob("*.txt"))]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    texts += [str(one.value) for tree in trees for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    whole = "\n".join(texts)
    moods = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    assert [] == [name for part, name in names() if f"{{{name}}}" not in whole and f"{part}.{name}" not in whole]
    assert [] == [name for name in table("frames.mood") if not re.search(rf"whole\(.{name}.\)", moods)]


def test_a_name_that_stands_nowhere_is_an_error():
    with pytest.raises(KeyError, match="no words are called 'nonsense'"):
        expanded("{nonsense}")
    with pytest.raises(KeyError):
        words("nouns.nonsense")


def is_list(text: str) -> bool:
    """Whether a text is words alone, or alternatives, and no sentence."""
    bare = re.sub(r"\\.|\(\?P?<?\w*>?|[()\[\]?:!=*+^$]", " ", text)
    listed = bare.count("|") >= MOST_WORDS or ("." not in text and text == text.lower())
    return listed and len(set(re.findall(r"[a-z]{3,}", bare))) > MOST_WORDS


def texts_of(path: Path) -> list[tuple[int, str]]:
    """The texts of a module with their lines, but for those that say what something is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    said |= {id(node.value) for node in tree.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            found.append((node.lineno, node.value))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            keys = [*node.keys, *node.values] if isinstance(node, ast.Dict) else node.elts
            held = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            if id(node) not in said:
                found.append((node.lineno, " ".join(one for one in held if one == one.lower())))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(KNOWLEDGE)))
def test_no_words_stand_outside_the_lexicon(path):
    assert [] == [(line, text[:60]) for line, text in texts_of(path) if is_list(text)]


def test_a_list_is_known_from_a_sentence():
    assert is_list("january february march april may june july august september october november december sunday")
    assert is_list(r"\b(?:quit|left|sold|lost|gave|broke|threw|closed|ended|stopped|cancelled|dropped|moved|died)\b")
    assert not is_list("it is said of another, or of more than one, and so nobody can tell which of them is meant.")


@pytest.mark.parametrize(
    ("base", "past"), [("donate", "donated"), ("return", "returned"), ("try", "tried"), ("play", "played")]
)
def test_the_past_of_a_regular_verb(base, past):
    assert past == regular(base)


def test_a_verb_has_its_forms():
    give_up = verb_of("given up")
    assert give_up is not None
    assert ("give up", "end.abandon", ("gave up", "given up")) == (give_up.name, give_up.sense, give_up.done)
    assert verb_of("sold out of pity") is None
    assert {"end.part_with", "end.stop"} < {verb.sense for verb in verbs("end")}


@pytest.mark.parametrize(
    ("some", "fit", "fail"),
    [
        (["go", "gone", "go off"], ["go", "gone", "go off"], ["g", "gon", "off"]),
        (["a.b", "a|b"], ["a.b", "a|b"], ["axb", "a"]),
        (["é", "éa", "ß"], ["é", "éa", "ß"], ["e", "s"]),
    ],
)
def test_any_of_some_words_is_each_of_them_and_the_longest(some, fit, fail):
    any_word = re.compile(any_of(some))
    assert all(any_word.fullmatch(word) for word in fit)
    assert not any(any_word.fullmatch(word) for word in fail)
    longest = max(some, key=len)
    assert longest == any_word.match(f"{longest}!")[0]


@pytest.mark.parametrize(
    ("name", "forms", "error"),
    [
        ("forgo", "forgo forwent forgone", r"verbs.toml, \[end.stop\]"),
        ("jettison *", "", "not the last"),
        ("palm *off", "", "not the last"),
        ("palm * * off", "", "not the last"),
        ("", "", "not the last"),
        ("palm", ["palmed"], "not the last"),
    ],
)
def test_a_verb_that_is_written_wrongly_is_told_with_its_row(name, forms, error):
    with pytest.raises(ValueError, match=error):
        load._verb("end.stop", name, forms)


def test_a_broken_pattern_is_told_as_it_was_written():
    with pytest.raises(ValueError, match=r"written out: \{profession\} \("):
        compiled("{profession} (").search("a")


def test_each_pattern_compiles_and_is_then_used_as_any_other(monkeypatch):
    monkeypatch.setattr(pattern, "_LAZY", [*LAZY])
    some = pattern.lazily(lambda: re.compile("a(?P<x>b)"))
    left = sum(not lazy.is_made for lazy in pattern._LAZY)
    asked = iter([True, False])
    pattern.compile_all(lambda: next(asked, False))
    assert max(0, left - 2) == sum(not lazy.is_made for lazy in pattern._LAZY)
    pattern.compile_all()
    assert all(lazy.is_made for lazy in pattern._LAZY)
    assert len(pattern._LAZY) > 500
    assert ("b", "a(?P<x>b)", {"x": 1}) == (some.search("ab")["x"], some.pattern, dict(some.groupindex))
    assert "-" == some.sub("-", "ab")
    with pytest.raises(AttributeError):
        _ = some.none


def test_a_relation_that_stands_twice_is_told():
    with pytest.raises(ValueError, match=r"nouns.toml, \[relation\]: 'boss' names 'boss' and 'manager'"):
        _by_word([{"boss": ""}, {"manager": "boss"}])


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("i sold (?P<x>.+)\n= i lost \\g<y>\n> a > b", "no group is called 'y'"),
        ("i sold (?P<x>.+)\n i lost \\g<x>\n> a > b", "a line with = or ~"),
        ("i sold (?P<x>.+)\n= i lost \\g<x>\n> a", "an example > outcome"),
        ("i sold (?P<x>.+)\n= i lost \\g<x>", "an example > outcome"),
        ("i sold (.+)\n= i lost \\2\n> i sold it > i lost it", "invalid group reference 2"),
        ("i sold (?P<x>.+\n= i lost \\g<x>\n> a > b", "> a > b: no pattern"),
        ("i {sold} (?P<x>.+)\n= i lost \\g<x>\n> a > b", "no words are called 'sold'"),
    ],
)
def test_a_rewrite_that_is_written_wrongly_is_told(row, error):
    with pytest.raises(ValueError, match=error):
        list(read_rewrites(row))


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (["home", "one", "lives somewhere"], "a group"),
        (["home", "ones", "lives in (?P<v>.+)"], "one or maybe_one or many"),
        (["home", "lives in (?P<v>.+)"], "an attribute, one or"),
        (["+home", "one", "lives in (?P<v>.+)"], "an attribute, one or"),
        (["of {who}", "one", "lives in (?P<v>.+)"], "an attribute, one or"),
        (["home", "one", "{residing} in (?P<v>.+)"], "no words are called 'residing'"),
    ],
)
def test_a_predicate_that_is_written_wrongly_is_told_with_its_row(row, error):
    with pytest.raises(ValueError, match=rf"predicates.toml: .*{error}"):
        list(read_predicates([row]))


def test_a_form_in_two_senses_is_told(monkeypatch):
    held = {"end": {"stop": {"halt": ""}}, "change": {"halt": ""}}
    monkeypatch.setattr(load, "table", lambda path: held if path == "verbs" else held[path.removeprefix("verbs.")])
    load.verbs.cache_clear()
    load._by_form.cache_clear()
    with pytest.raises(ValueError, match=r"'halted' stands in \[end.stop\] and in \[change\]"):
        load._by_form()
    load.verbs.cache_clear()
