"""Fuzzing of all that memoryd reads: one function for each input, a corpus in the tree, atheris or a small mutator."""

from __future__ import annotations

from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())
