"""What the tests of one subject share."""

from __future__ import annotations

import gc
import sys
import types
from array import array
from collections.abc import Iterator

CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
NEST = "the blue heron nests behind the third lighthouse"


def _held_by(*roots) -> Iterator[str]:
    """Every text that can be reached from some objects, and from the modules of memoryd."""
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.split(".")[0] == "memoryd"]
    pending, seen = [*roots, *modules], {}  # what was seen is kept, so that no id is given again
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, types.ModuleType | types.CodeType | types.FrameType):
            continue
        seen[id(one)] = one
        if isinstance(one, str):
            yield one
        elif isinstance(one, types.FunctionType):
            pending.extend([one.__closure__, one.__defaults__])  # not the module that it is of
        elif isinstance(one, bytes | bytearray | array):
            yield bytes(one).decode("latin-1")
        else:
            pending.extend(one if isinstance(one, dict) else ())  # the collector passes over keys that are texts
            pending.extend(gc.get_referents(one))
