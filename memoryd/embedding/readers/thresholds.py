"""From which score on a reader counts; measured on voices that nothing was tuned with, `make eval`."""

from __future__ import annotations

__all__ = ["CONTESTED", "KEPT", "LEAST_NEAR"]

LEAST_NEAR = 0.3
"""Cosine of two statements from which on the change reader reads them together."""
CONTESTED = 0.65
"""Of the change reader: from it on, two statements are contested."""
KEPT = 0.85
"""Of the keeping reader: from it on, a sentence is kept."""
