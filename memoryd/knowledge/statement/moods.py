"""How something is said: in doubt, as a change, as an end, as something that happened; patterns over whole texts."""

from __future__ import annotations

import re

__all__ = ["ADDING", "CHANGING", "HABITUAL", "HAPPENED", "HEDGED", "NOT_ENDED", "TAIL_CLAUSE", "TURNING"]

TAIL_CLAUSE = re.compile(
    r", (?:(?:i|it|we|they|he|she|my \w+|our \w+) (?!(?:think|guess|believe|suppose|doubt|would|love|adore"
    r"|hate)\b).+|not sure why|no idea why"
    r"|believe it or not.*|funny enough.*)[.!]*$",
    re.IGNORECASE,
)
"""A reason at the end: the doubt in it is no doubt of what stands before it."""
HEDGED = re.compile(
    r"\?|^sure,|\b(?:if|maybe|perhaps|might|would(?! (?:rather|sooner))|could|should|probably|possibly|presumably"
    r"|apparently|seems?|unsure"
    r"|not sure|(?<!favorite )(?<!favourite )(?:kind|sort) of|i (?:do not |did not )?(?:guess|think|doubt"
    r"|believe(?! in\b))"
    r"|wish|imagine|suppose|pretend\w*|jok(?:e|ing)|kidding"
    r"|yeah,? right|oh,? sure"
    r"|(?:thinks?|believes?|assumes?|claims?|heard|says?) (?:that )?i (?:am|have|do|was|gave|quit|stopped)"
    r"|used to (?:not|never)|did not use to|not (?:just|only|that)"
    r"|not \w+ [^,]{1,40}, (?:i|we|he|she|they) (?:love|adore|hate)s?"
    r"|oh,? great|as if|supposedly|allegedly|dream(?:s|ed|t)? (?:of|about|that)|what a|totally normal|/s)\b",
    re.IGNORECASE,
)
CHANGING = re.compile(
    r"\b(?:now|anymore|no longer|no more|instead|rather than|after all|switched|changed?|moved|migrated|became|become"
    r"|turned into|new|these days|nowadays|lately|actually|correction|update[ds]?|since (?:last|this)|from now on"
    r"|going forward|promoted|replaced|recently|just (?:got|bought|started|joined|switched|became)|as of|starting"
    r"|quit|left|stopped|gave up|given up|cancell?ed|cancel|called off|is off|sold|traded|gave (?:it|the"
    r"|my) \w+ to|died"
    r"|passed away|broke up|split up|divorced?|resigned|retired|stepped down|took over|taken over|taking over"
    r"|finished"
    r"|finally|back (?:home|to)|turns out|decided|dropped|pulled out|raised|lowered|increased|reduced|bumped|cut"
    r"|upgraded"
    r"|downgraded|renamed|extended|extension|delayed|rescheduled|postponed|pushed|moves|relocated|used to"
    r"|come (?:a)?round|got over|outgrew|lapsed?|expired|shut down|closed|negative|officially|down to|up to"
    r"|already)\b",
    re.IGNORECASE,
)
TURNING = re.compile(
    r"\b(?:now|anymore|no longer|no more|after all|switched|moved|migrated|these days|nowadays|lately|from now on"
    r"|replaced|quit|stopped|gave up|given up|cancell?ed|cancel|called off|is off|sold|traded|died|passed away"
    r"|broke up"
    r"|split up|divorced?|resigned|retired|stepped down|took over|taken over|taking over|turns out|dropped|pulled out"
    r"|raised|lowered|bumped|upgraded|downgraded|renamed|extension|delayed|rescheduled|postponed|pushed|relocated"
    r"|come (?:a)?round|got over|outgrew|lapsed?|shut down|negative|officially|down to|changed|promoted|finally"
    r"|back home"
    r"|moves|left|only|got back|out of|has a new|have a new|got a new)\b",
    re.IGNORECASE,
)
NOT_ENDED = re.compile(
    r"\b(?:even more|more than ever|never been more|still)\b|\b(?:not|never|nearly|almost)(?: \w+)? (?:stop(?:ped)?"
    r"|quit|g[ai]ven? up|left|sold|cancell?ed|dropped|moved"
    r"|resigned|retired|divorced?)\b",
    re.IGNORECASE,
)
HAPPENED = re.compile(
    r"\b(?:was|were|went|visited|met|saw|bought|ate|watched|read|won|attended|finished|completed|traveled|travelled"
    r"|flew|ran|had|took|did|made|gave|got|came|told|said|wrote|published|received|released|cooked|(?<=\bi )called"
    r"|(?<=\bwe )called|(?<=just )called|spent|lost"
    r"|found|broke|fixed|hosted|taught|learned|learnt|climbed|booked|ordered|sold|paid|signed|deployed|shipped"
    r"|collaborated|organized|organised|graduated|discovered|performed|played|presented|co-\w+ed)\b",
    re.IGNORECASE,
)
ADDING = re.compile(
    r"\b(?:also|as well|another|other|besides|one of my"
    r"|too(?! (?:much|many|few|little|sweet|salty|greasy|loud|slow|noisy|heavy|rich|bitter|violent|crowded|old|wordy"
    r"|expensive|boring|hard|painful|stressful|dry)\b))\b",
    re.IGNORECASE,
)
HABITUAL = re.compile(r"\b(?:every|each|daily|weekly|usually|always|often|regularly|normally)\b", re.IGNORECASE)
