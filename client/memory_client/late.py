"""Modules that are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Late"]


class Late:
    """Stands for a module; what is asked of it is asked of the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
