"""
From which score on a reader counts, with the curves that say so.

Measured on 73 voices that no reader was tuned with (`make eval`), and chosen there too.
"""

from __future__ import annotations

__all__ = ["ANSWERING", "CLEAR", "CONTESTED", "KEPT", "LEAST_NEAR", "NAMED", "UNNAMED"]

ANSWERING = 0.1
"""
Of the answer reader: where it says less of each of the best statements, none of them is shown.

What would be left out of the best six by their vectors, but for what is near the question: of questions that nothing
answers / that something answers / that a note answers which was stored for them; of prompts with which nothing helps /
something does:

    from on      left out
    .03          .17 / .002 / .003; .08 / 0
    .05          .18 / .005 / .005; .12 / 0
    .08          .20 / .010 / .013; .12 / .002
    .10          .21 / .011 / .014; .15 / .002
    .15          .25 / .035 / .021; .21 / .005
    .20          .27 / .061 / .027; .26 / .010
    .30          .35 / .13 / .04; .39 / .025
"""
LEAST_NEAR = 0.3
"""Cosine of two statements from which on the change reader reads them; from .2 on 3 of 100 more, of twice the pairs."""
CONTESTED = 0.63
"""
Of the change reader: from it on, two statements are contested.

    from on      replacing / doubtful / holding statements, near ones of stores that are marked
    .50          .52 / .29 / .064, .0151
    .60          .46 / .22 / .041, .0082
    .63          .44 / .20 / .036, .0071
    .65          .42 / .19 / .032, .0065
    .70          .38 / .16 / .022, .0038
    .80          .27 / .11 / .010, .0023
    .90          .12 / .03 / .003, 0
"""
KEPT = 0.9
"""
Of the keeping reader: from it on, a sentence is worth keeping.

    from on      precision, recall against one labelling, of what is clear by itself (see CLEAR)
    .60          .77, .52
    .80          .81, .49
    .90          .86, .44
    .95          .90, .40
"""
CLEAR = 0.6
"""
Of the keeping reader: from it on, a sentence is understood by itself, and kept.

    from on      of what is kept clear / doubtful, by a labelling of sentences alone; recall of what is worth keeping
    0            .67 / .12, .57
    .30          .79 / .12, .48
    .50          .83 / .11, .45
    .60          .84 / .11, .44
    .80          .87 / .10, .39

The patterns that judged it before: .58 / .08 of all sentences that they let pass.
"""
NAMED, UNNAMED = 0.7, 0.3
"""
Of the people reader: from the first on, a word is of a person's name; below the second, it is of none.

    from on      words of names found, and right, in all texts of the voices apart
    .50          .93, .82
    .70          .90, .86
    .90          .81, .91

With the patterns, in one process (by name, without titles), of 224 people with hard names (people.tsv; the patterns
alone find .66, right .75) and of 400 sentences of a stranger's (.59, .81):

    from on, below    found, right; of the stranger's
    .50, .30          .94, .83; .94, .81
    .70, .05          .92, .80; .93, .83
    .70, .30          .92, .83; .93, .84
    .90, .30          .86, .83; .89, .88
    .90, .50          .86, .85; .87, .88
"""
