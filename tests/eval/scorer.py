"""The scorer, which lies with the data and is no part of this project."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["scorer_of"]


def scorer_of(folder: Path) -> ModuleType:
    """Return the module eval_retrieval of a folder."""
    path = folder / "eval_retrieval.py"
    if not path.is_file():
        sys.exit(f"{path} is missing; DATA names the folder that holds eval_retrieval.py")
    spec = importlib.util.spec_from_file_location("eval_retrieval", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["eval_retrieval"] = module
    spec.loader.exec_module(module)
    return module
