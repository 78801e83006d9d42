"""What people read is plain English: comments, docstrings, messages, the contract and the documentation."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HARD = {
    "beside": "next to, or besides",
    "nobody": "no one",
    "somebody": "someone",
    "whom": "who, or a sentence of its own",
    "whence": "where from",
    "whereof": "of what",
    "wherein": "in which",
    "thereof": "of it",
    "hereby": "so",
    "of which": "a sentence of its own",
    "that which": "what",
    "inasmuch": "as",
    "notwithstanding": "despite",
    "aforementioned": "this",
}
"""Words that a reader whose second language is English stumbles over, and what to write instead."""
WORDS = re.compile(rf"\b({'|'.join(HARD)})\b", re.IGNORECASE)
MADE = ("memoryd/v1/", "client/memory_client/client.py", "tests/")  # generated, or not read by users
EXCEPTIONS = {
    ("memoryd/index/analysis.py", "whom"): "a list of words that searches leave out",
    ("memoryd/index/sequences.py", "nobody"): "the name of a constant",
    ("memoryd/knowledge/comparison/attribute_rules.py", "nobody"): "the reason that stored judgements give",
    ("memoryd/domain/writing/revival.py", "beside"): "the reason that stored judgements give",
}


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what of a file is read by people, with its line: of Python comments, and text of more than one word."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml" and "lexicon" in path.parts:
        yield from ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#"))
    elif path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_pattern = "\\b" in token.string or "(?" in token.string
            is_text = token.type == tokenize.STRING and " " in token.string and not is_pattern
            if token.type == tokenize.COMMENT or is_text or (token.type == tokenize.STRING and '"""' in token.string):
                yield token.start[0], token.string


def files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    kinds = (".py", ".proto", ".md", ".toml")
    return [name for name in listed if name.endswith(kinds) and not name.startswith(MADE)]


def hard_words(path: Path) -> list[tuple[int, str]]:
    return [(n, found[0].lower()) for n, text in texts_of(path) for found in WORDS.finditer(text)]


def test_no_hard_word_is_used():
    found = [
        f"{name}:{n}: {word!r}; write {HARD[word]}"
        for name in files()
        for n, word in hard_words(ROOT / name)
        if (name, word) not in EXCEPTIONS
    ]
    assert found == []


@pytest.mark.parametrize(("name", "word"), EXCEPTIONS)
def test_an_exception_is_still_needed(name, word):
    assert word in {found for _, found in hard_words(ROOT / name)}


def test_comments_docstrings_and_messages_are_read_and_patterns_are_not(tmp_path):
    source = tmp_path / "x.py"
    source.write_text('"""Nobody."""\nx = "of which one"  # whom\ny = r"\\bsomebody \\b"\nnobody = "beside"\n')
    assert [(1, "nobody"), (2, "of which"), (2, "whom")] == hard_words(source)
