"""
From which score on a reader counts, with the curves that say so.

Measured on 73 voices that no reader was tuned with (`make eval`), and chosen there too.
"""

from __future__ import annotations

__all__ = ["CONTESTED", "KEPT", "LEAST_NEAR", "NAMED", "UNNAMED"]

LEAST_NEAR = 0.3
"""Cosine of two statements from which on the change reader reads them; from .2 on 3 of 100 more, of twice the pairs."""
CONTESTED = 0.65
"""
Of the change reader: from it on, two statements are contested.

    from on      replacing / doubtful / holding statements, near ones of stores that are marked
    .50          .57 / .34 / .066, .0151
    .60          .52 / .28 / .045, .0080
    .65          .47 / .25 / .034, .0061
    .70          .42 / .21 / .024, .0044
    .80          .31 / .15 / .011, .0021
    .90          .14 / .03 / .002, 0
"""
KEPT = 0.9
"""
Of the keeping reader: from it on, a sentence is kept, if it stands alone.

    from on      precision, recall against one labelling; in brackets: with what does not stand alone
    .50          .68 (.70), .45 (.71)
    .70          .74 (.78), .39 (.62)
    .85          .78 (.83), .34 (.53)
    .90          .78 (.85), .32 (.48)
    .95          .82 (.87), .28 (.40)

Another reader of 300 that were kept from .85 on called 60 of 100 good, 21 unclear by themselves, 10 idle and 8 wrong,
most of these by their day; since then days in doubt are left out, and so are parts of sentences.
"""
NAMED, UNNAMED = 0.7, 0.3
"""
Of the people reader: from the first on, a word is of a person's name; below the second, it is of none.

    from on      words of names found, and right, in all texts of the voices apart
    .50          .94, .80
    .70          .90, .85
    .90          .80, .90

With the patterns, in one process (by name, without what a daemon adds), of 224 people with hard names (people.tsv; the
patterns alone find .67, right .75):

    from on, below    found, right
    .50, .30          .92, .75
    .70, .05          .90, .76
    .70, .30          .89, .77
    .90, .30          .85, .79
"""
