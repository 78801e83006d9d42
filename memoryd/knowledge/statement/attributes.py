"""
The tables of `claims`: what simple sentences say of somebody, and how many values each attribute has at a time.

In a pattern, `~word` stands for any word or phrase of a vocabulary below.
"""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.words import DAYS, NUMBER_WORDS, UPPER
from memoryd.knowledge.statement.claim import Cardinality

__all__ = ["EVENTS", "MEAT", "PLACES", "PREDICATES", "PROFESSION_PATTERN", "SINGULAR", "TIME", "VALUED", "expanded"]


MEAT = "meat beef pork chicken steak bacon"
"""What ends a diet without it."""
PLACES = frozenset(["home", "birthplace", "origin"])
"""Attributes whose value is a place."""
_VOCABULARIES = {
    "be": "am is are was were 's be",
    "became": "am/is/are/was/were/became/have become/has become",
    "have": "have has",
    "own": "have has own owns got",
    "just": "just recently finally",
    "their": "my his her their the our",
    "live": "live lives lived living reside resides based",
    "move": "moved relocated",
    "work": "work works worked working employed",
    "join": (
        "joined/started at/started for/started working at/started working for/got a job at/got a job with"
        "/got a new job at/got a new job with/accepted an offer from"
    ),
    "leave": (
        "left/quit/resigned from/retired from/was laid off from/was laid off by/was fired from"
        "/was fired by/got fired from/got laid off from/was made redundant from/was made redundant by/was let go from"
    ),
    "profession": (
        "teacher doctor nurse lawyer chef developer designer manager director professor student writer"
        " author artist pilot driver farmer baker butcher accountant architect consultant dentist surgeon"
        " pharmacist plumber electrician carpenter painter musician singer actor actress journalist"
        " editor translator librarian firefighter soldier waiter waitress barista bartender cashier clerk"
        " secretary assistant intern freelancer contractor founder ceo cto cfo programmer tutor coach"
        " trainer therapist psychologist veterinarian vet scientist researcher realtor banker broker"
        " trader sculptor rep representative recruiter coordinator analyst specialist supervisor officer technician"
        " copywriter"
        " parent cook nanny agent inspector stylist strategist tailor illustrator engineer consultant pianist"
        " violinist cellist guitarist unemployed retired"
    ),
    "wedded": "married divorced single engaged widowed separated",
    "diet": "vegan vegetarian pescatarian pescetarian omnivore carnivore flexitarian",
    "regime": "keto paleo gluten-free dairy-free lactose-free halal kosher low-carb",
    "like": (
        "a fan of/a big fan of/a huge fan of/fond of/keen on/into/crazy about/like/likes/liked/love/loves"
        "/loved/enjoy/enjoys/enjoyed/enjoying/adore/adores"
    ),
    "dislike": ("dislike/dislikes/hate/hates/detest/detests/despise/despises/avoid/avoids/can not stand/can not bear"),
    "prefer": "prefer prefers preferred",
    "over": "over/to/rather than/instead of/than",
    "plan": "planning plan plans going intend intends hoping hope hopes want wants",
    "travel": "flying travelling traveling going heading",
    "end": (
        "cancelled/canceled/called off/gave up/gave up on/given up/given up on/stopped/sold/quit/ditched/dumped"
        "/got rid of/gone off/went off/lost interest in/done with/finished with/traded in"
    ),
    "after": (
        "because/after/since/to/for/altogether/completely/entirely/yesterday/today/last/in favour of/in favor of"
    ),
    "drive": "drive drives drove",
    "use": "use uses using",
    "run": "use uses using run runs running",
    "switch": "switched changed migrated moved went converted",
    "speak": "speak/speaks/am fluent in/is fluent in/am learning/is learning/learn/learns",
    "masses": "kg kgs kilo kilos kilogram kilograms lb lbs pound pounds stone",
    "lengths": ("cm centimeter centimeters centimetre centimetres m meter meters metre metres feet foot ft inches in"),
    "habit": (
        "wake up/wakes up/get up/gets up/go to bed/goes to bed/go to sleep/goes to sleep/start work"
        "/starts work/finish work/finishes work/leave work/leaves work/have lunch/has lunch/eat dinner"
        "/eats dinner/have dinner/has dinner"
    ),
    "measured": (
        "run runs walk walks swim swims cycle cycles jog jogs sleep sleeps drink drinks smoke smokes read"
        " reads practice practices practise meditate meditates study studies earn earns pay pays spend"
        " spends charge charges"
    ),
    "consume": "eat eats eating drink drinks drinking smoke smokes smoking",
    "report": "report reports reporting",
    "play": "play plays playing",
    "student": "student studying study studies",
    "booked": "trip flight visit journey holiday appointment reservation booking subscription membership",
    "meat": MEAT,
    "then": "again now since in on at once every too",
    "often": "usually always normally",
    "allergy": "allergy allergies",
    "outgrow": "outgrew/outgrown/overcame/got over",
    "single": (
        "name/nickname/email/e-mail/number/address/birthday/job/title/role/employer/company/team/manager"
        "/boss/wife/husband/partner/spouse/girlfriend/boyfriend/mother/father/mom/mum/dad/fiance/fiancee"
        "/landlord/doctor/dentist/editor/language/timezone/budget/deadline/goal/major/size/weight/height"
        "/age/salary/rent/status/hometown/nationality/diet/plan/schedule/standup/stand-up/meeting"
        "/appointment/flight/train/exam/interview/wedding/anniversary/class/lesson/gym/school/university"
        "/phone/laptop/commute/income/car/bike/shift/city/country/browser/bank/office/branch/version/database/port/limit"
        "/theme/birth date/job title/time zone/blood type/password manager/phone number/shoe size"
        "/household/job search/work mode/coffee order/tea order/level/carrier"
    ),
    "when": " ".join(sorted(DAYS)),
    "number": " ".join(NUMBER_WORDS),
}
"""Words between spaces; where there are phrases among them, between slashes."""
TIME = (
    r"(?:\d{1,2}(?:[:.]\d\d)?(?: ?(?:am|pm|a\.m\.|p\.m\.|o'clock|h))?(?![\w.])|noon|midnight|half past \w+"
    r"|quarter (?:to|past) \w+)"
)


def _any_of(name: str) -> str:
    text = _VOCABULARIES[name]
    words = sorted(text.split("/" if "/" in text else None), key=len, reverse=True)
    return "|".join(re.escape(word).replace("\\ ", " ") for word in words)


def expanded(pattern: str) -> str:
    """Return a pattern with its vocabularies written out."""
    return re.sub(r"~([a-z]+)", lambda match: f"(?:{_any_of(match[1])})", pattern)


_ADVERBS = r"(?:(?:currently|now|still|just|recently|really|also|always|usually|mostly|actually|absolutely|finally) )*"
_CAPITAL = f"(?-i:[{UPPER}])"
_AFTER = r"(?: (?:as|in|on|last|this|after|when) .+)?"
_NAMED = rf"(?P<v>{_CAPITAL}[\w.&'-]*(?: (?:{_CAPITAL}[\w.&'-]*|of|and|the|&))*){_AFTER}"
_JOB = r"(?:[\w-]+ )*?(?:\w+(?:ologist|ician|ographer|eer|yst)|~profession)"
_AMOUNT = r"(?:[$€£]?\d+(?:[.,]\d+)?k?|~number)\b"
_BY = rf"(?:to work in |in )?(?:(?:an?|my|the) |(?={_CAPITAL}))"
PREDICATES: tuple[tuple[re.Pattern[str], str, Cardinality], ...] = tuple(
    (re.compile(f"{_ADVERBS}(?:{expanded(pattern)})$", re.IGNORECASE), attribute, holds)
    for pattern, attribute, holds in (
        (r"(?:~be )?~live(?: \w+ly)? (?P<prep>in|at|near|on) (?P<v>.+)", "home", Cardinality.ONE),
        (
            r"(?:~have )?(?:~just )?~move(?: (?:house|home))? from (?P<left>.+?) (?:back )?to (?P<v>.+)",
            "home",
            Cardinality.ONE,
        ),
        (r"(?:~have )?(?:~just )?~move (?:back )?(?:in)?to (?P<v>.+)", "home", Cardinality.ONE),
        (r"(?:~have )?(?:~just )?settled (?:down )?in (?P<v>.+)", "home", Cardinality.ONE),
        (r"(?:~have )?(?:legally )?changed ~their name to (?P<v>.+)", "name", Cardinality.ONE),
        (
            r"(?:asked|said|wants?|~prefer)(?: \w+)? to (?:be called|go by|call \w+) (?P<v>.+)",
            "nickname",
            Cardinality.ONE,
        ),
        (
            r"(?:~be )?~work(?: as an? [\w ]+?)? (?:at|for) (?P<v>.+?)(?: as (?:an? |the ).+)?",
            "employer",
            Cardinality.ONE,
        ),
        (rf"(?:~have )?(?:~just )?~join {_NAMED}", "employer", Cardinality.ONE),
        (rf"(?:~have )?(?:~just )?~leave {_NAMED}", "-employer", Cardinality.ONE),
        (r"(?:~be )?~work as (?:an? |the )?(?P<v>.+)", "occupation", Cardinality.MAYBE_ONE),
        (r"(?:was |got |been |have been |has been )?promoted to (?P<v>.+)", "occupation", Cardinality.MAYBE_ONE),
        (rf"~became (?:an? |the |now an? )?(?P<v>{_JOB})", "occupation", Cardinality.MAYBE_ONE),
        (
            (
                r"(?:~be|turned|turns|just turned|will be) (?P<v>\d{1,3}|~number)(?: (?:years?|yrs?)(?: old"
                r"| of age)?| yo"
                r"|-years?-old)?(?: (?:today|yesterday|last \w+|this \w+|in \w+))?"
            ),
            "age",
            Cardinality.ONE,
        ),
        (r"~be (?P<v>\d{1,2} (?:months?|weeks?|days?) old)", "age", Cardinality.ONE),
        (r"~be (?:called|named) (?P<v>.+)", "name", Cardinality.ONE),
        (r"(?:go by|goes by) (?P<v>.+)", "nickname", Cardinality.ONE),
        (
            r"(?:~be|got|have been|has been) (?:\w+ly |now |just )*(?P<v>~wedded)(?: (?:to|from) .+)?",
            "marital status",
            Cardinality.ONE,
        ),
        (r"(?:got|have gotten) (?P<v>~wedded)(?: .*)?", "marital status", Cardinality.ONE),
        (
            r"(?:~became|went|turned|have been|has been) (?:an? |mostly |strictly |fully )*(?P<v>~diet)(?: \w+)?",
            "diet",
            Cardinality.ONE,
        ),
        (r"(?:~became|went|turned|have been|has been|be) (?:\w+ )?(?P<v>~regime)(?: \w+)?", "regime", Cardinality.MANY),
        (r"(?:~be )?(?:follow|follows|on) (?P<v>[\w-]+) diet", "regime", Cardinality.MANY),
        (r"~be (?:now )?on team (?P<v>.+)", "team", Cardinality.ONE),
        (r"commute by (?P<v>.+)", "commute", Cardinality.ONE),
        (r"fears? (?P<v>.+)", "fears", Cardinality.MANY),
        (r"~be (?P<v>pregnant)(?:,? .*)?", "pregnancy", Cardinality.ONE),
        (r"~be (?:\w+ly |very )?allergic to (?P<v>.+)", "allergy", Cardinality.MANY),
        (r"(?:~have|having|suffers? from) (?:an? |\w+ )?(?P<v>[\w ]+?) ~allergy", "allergy", Cardinality.MANY),
        (r"(?:~have )?~outgrow ~their (?P<v>[\w ]+?) allergy", "-allergy", Cardinality.MANY),
        (r"~like (?P<v>.+?) instead of (?P<left>.+)", "likes", Cardinality.MANY),
        (r"(?:(?:~have )?(?:come|learned|learnt|grown|started) to |~be )?~like (?P<v>.+)", "likes", Cardinality.MANY),
        (r"~dislike (?P<v>.+)", "!likes", Cardinality.MANY),
        (r"(?:would )?~prefer (?P<v>.+?)(?: ~over (?P<left>.+))?", "prefers", Cardinality.MANY),
        (r"(?:~be )?~plan to (?P<v>.+)", "plans", Cardinality.MANY),
        (rf"~be ~travel to (?P<v>{_CAPITAL}\w+.*)", "trip", Cardinality.MANY),
        (r"(?:broke up|split up|separated|have broken up) (?:with|from) (?P<v>.+)", "-partners", Cardinality.MANY),
        (r"(?:have |has )?graduated from (?P<v>.+)", "-studies", Cardinality.MANY),
        (
            r"(?:~be )?(?:an? )?(?:\w+ )?~student(?: [\w ]+?)? at (?P<v>.+)",
            "studies",
            Cardinality.MANY,
        ),
        (r"(?:~be )?subscribed? to (?P<v>.+)", "subscriptions", Cardinality.MANY),
        (r"~have (?:an? )?(?P<v>.+) subscription", "subscriptions", Cardinality.MANY),
        (rf"(?:~be )?~report (?:directly )?to (?P<v>{_CAPITAL}[\w ]+)", "boss", Cardinality.ONE),
        (r"(?:~have )?traded (?:in )?~their (?P<left>.+?) (?:in )?for (?P<v>.+)", "uses", Cardinality.MAYBE_ONE),
        (r"~play (?P<v>.+)", "plays", Cardinality.MANY),
        (r"(?:~have )?~end (?:~their )?(?P<v>~booked (?:to|for|with|at) .+)", "-*", Cardinality.MANY),
        (r"(?:~have )?~end (?:~their )?(?P<v>[^,]+?)(?:(?: (?:~after|and)\b|,) ?.*)?", "-*", Cardinality.MANY),
        (r"(?:~have )?replaced (?:~their )?(?P<left>.+?) (?:with|by) (?P<v>.+)", "uses", Cardinality.MAYBE_ONE),
        (r"wants? (?P<v>.+?) instead of (?P<left>.+)", "prefers", Cardinality.MANY),
        (r"(?:~be )?~use (?P<v>.+?)(?: now)? instead of (?P<left>.+)", "uses", Cardinality.MANY),
        (r"~own (?P<v>(?:\d+|~number) (?P<of>[a-z][\w-]*(?: [a-z][\w-]*)?))", "number of {of}", Cardinality.ONE),
        (r"(?:~own|adopted|bought) (?P<v>an? .+)", "has", Cardinality.MANY),
        (rf"~drive {_BY}(?P<v>(?:(?! (?:to|for|home|around) ).)+)", "vehicle", Cardinality.MAYBE_ONE),
        (r"(?:~be )?~run (?P<v>.+?) as (?:~their |an? )?(?P<of>.+)", "uses for {of}", Cardinality.ONE),
        (r"(?:~be )?~run (?P<v>.+?) for (?:~their |an? )?(?P<of>.+)", "uses for {of}", Cardinality.MAYBE_ONE),
        (r"~switch from (?P<left>.+?) to (?P<v>.+)", "uses", Cardinality.MAYBE_ONE),
        (r"(?:~be )?~use (?P<v>.+)", "uses", Cardinality.MANY),
        (r"~speak (?P<v>.+)", "languages", Cardinality.MANY),
        (r"(?:weighs?|~be) (?P<v>\d+(?:[.,]\d+)? ?~masses)(?: .*)?", "weight", Cardinality.ONE),
        (r"~be (?P<v>\d+(?:[.,]\d+)? ?~lengths\b.*?)(?: tall)?", "height", Cardinality.ONE),
        (r"~be born (?:on|in) (?P<v>.*(?:\d|~when).*)", "birthday", Cardinality.ONE),
        (r"~be born in (?P<v>.+)", "birthplace", Cardinality.MAYBE_ONE),
        (r"(?:~be|comes?) (?:originally )?from (?P<v>.+)", "origin", Cardinality.MAYBE_ONE),
        (
            rf"(?P<of>(?:~often )?(?:~habit|takes? (?:my|his|her) \w+)) (?:at|around|by) (?P<v>{TIME})",
            "time of {of}",
            Cardinality.ONE,
        ),
        (rf"(?P<of>~measured) (?:about |around |only |roughly )?(?P<v>{_AMOUNT}.*)", "amount of {of}", Cardinality.ONE),
        (r"(?:~have )?(?:started )?~consume (?P<v>~meat)(?: ~then\b.*)?", "consumes", Cardinality.MANY),
        (r"(?:~be )?(?:~have )?(?:started )?~consume (?P<v>.+)", "consumes", Cardinality.MANY),
    )
)
"""What a subject does or is: the text after it, its attribute, and how many values that has."""

PROFESSION_PATTERN = expanded("~profession")
"""Any of the professions."""

SINGULAR = re.compile(expanded(r"^(?:[\w.-]+ ){0,3}(?:~single|default \w+)$"))
"""Things of which one has one, so that another value of them is a change."""

VALUED = re.compile(
    expanded(
        r"^(?:[\w.-]+ ){0,3}(?:name|nickname|e-?mail|number|address|birthday|title|role|status|nationality|diet"
        r"|language|level|household|job search|work mode|(?:coffee|tea) order|branch|timezone|time zone|major|size"
        r"|weight|height|age|theme|database|browser|version|port|limit"
        r"|shift|schedule|blood type|birth date|default \w+)$"
    )
)
"""Things whose bare word is their value ("my role is lead"), not a remark on them ("my car is fast")."""

EVENTS = re.compile(r"^(?:[\w.-]+ ){0,3}(?:meeting|appointment|flight|train|exam|interview|class|lesson)$")
"""Things of which there are several in time: when one is, is a plan of its own; what else is said may be of another."""
