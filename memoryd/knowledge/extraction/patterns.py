"""
The table of what people say of themselves that is worth knowing for long.

A row is a category, a kind, a confidence and a pattern, matched from the beginning of a clause whose contractions are
written out. In a pattern `~name` stands for a vocabulary below; `<v>` is what is said, which must mean something by
itself: "I love that" says nothing. The first row that matches decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

from memoryd.knowledge.grammar.relations import RELATION_PATTERN
from memoryd.knowledge.statement.attributes import PROFESSION_PATTERN
from memoryd.model.memory import Kind

__all__ = ["CATEGORIES", "CLAIMED", "Row", "rows_of"]

CATEGORIES = ("personal", "preference", "relationship", "work", "habit", "goal", "decision", "date", "other")
SURE, LIKELY = 0.9, 0.8
"""Confidence in what is read: of a form that hardly ever means anything else, and of one that mostly does not."""

_ADVERB = (
    r"(?:also|much|far|actually|really|just|now|currently|still|honestly|personally|absolutely|recently|finally"
    r"|mostly|both|even"
    r"|only|definitely|generally|already|originally|officially|pretty|very|quite|super|kind of|sort of|strictly"
    r"|completely|fully|happily|newly|proudly|severely|deathly|highly|mildly|slightly|a bit|a little|partially"
    r"|basically|totally|truly|deeply|simply|too|as well|extremely|terribly|badly|firmly|legally|technically)"
)
_VOCABULARY: Mapping[str, str] = {
    "adv": rf"(?:{_ADVERB} )*",
    "not": r"(?:do not|did not|am not|can not|will not|have not|never|no longer|does not|is not|are not)",
    "a": r"(?:an?|my|our|the|some|one|two|three|four|five|six|\d+|several|a couple of|a few|no)",
    "profession": rf"(?:{PROFESSION_PATTERN}|engineer|cop|officer|analyst|consultant|nanny|coder|dev|midwife"
    "|paramedic"
    r"|technician|mechanic|salesperson|recruiter|analyst|cook|landscaper|gardener|tailor|florist|veteran|pastor"
    r"|priest"
    r"|judge|model|dancer|photographer|youtuber|streamer|entrepreneur|business owner|homemaker|stay-at-home \w+"
    r"|controller|illustrator|carpenter|interpreter|librarian|gp|sysadmin|sre|paralegal|actuary|physio|barber"
    r"|ce?[eotf]o|dba|emt|rn|rabbi|imam|sailor|pilot|waitress|\w+ologist|\w+ician|\w+eer|\w+ographer|\w+(?<!r)ist"
    r"|(?!(?:begin|believ|los|newcom|monst|disast|winn|gon|sinn|suck|dream|think|lov|hat|quitt|help|wander|strang"
    r"|foreign"
    r"|outsid|observ|both|custom|us|own|memb|numb|kill|mast|canc|work|learn|start|lat|pow|mind|fath|moth|broth|sist"
    r"|play"
    r"|read|speak|smok|drink|eat|sleep|riser|teenag|fact|mirr|err|survivor|gam|danc|goer)(?:er|or)s?\b)\w{3,}(?:er"
    r"|or)\b"
    r"|\w+ (?:engineer|teacher|manager|developer|student|nurse|driver"
    r"|designer|writer|worker|agent|owner|assistant|scientist|analyst|officer|coach|director|lead|major))",
    "person": rf"(?:{RELATION_PATTERN})s?",
    "kin": (
        r"(?:kids?|children|child|sons?|daughters?|sisters?|brothers?|siblings?|twins?|nephews?|nieces?|cousins?|wife"
        r"|husband|fianc[eé]e?|girlfriend|boyfriend|partner|grandkids|grandchildren|grandsons?|granddaughters?"
        r"|stepsons?|stepdaughters?|step-?kids|toddler|newborn|baby|teenagers?|roommates?|flatmates?|housemates?"
        r"|aunts?"
        r"|uncles?|boys|girls|(?:\d+|\w+)-(?:year|month|week)-old(?: \w+)?)"
    ),
    "pet": (
        r"(?:dogs?|cats?|kittens?|pupp(?:y|ies)|pets?|rabbits?|bunn(?:y|ies)|hamsters?|guinea pigs?|parrots?|birds?"
        r"|horses?|pon(?:y|ies)|goldfish|fish|turtles?|tortoises?|snakes?|geckos?|ferrets?|chickens?|goats?|budgies?"
        r"|cockatiels?|hedgehogs?|lizards?|huskies|husky|labradors?|lab|beagles?|poodles?|golden retrievers?|corgis?"
        r"|dachshunds?|chihuahuas?|bulldogs?|shepherds?|collies?|terriers?|mutts?|tabby|pugs?|greyhounds?|spaniels?)"
    ),
    "illness": (
        r"(?:asthma|diabetes|(?:type (?:1|2|one|two) )?diabetic|epilepsy|celiac(?: disease)?|coeliac(?: disease)?"
        r"|adhd|add"
        r"|autism|dyslexia|dyscalculia|arthritis|migraines?|eczema|psoriasis|anxiety|depression|bipolar(?: disorder)?"
        r"|ptsd|ocd|ibs|crohn'?s(?: disease)?|lupus|fibromyalgia|scoliosis|tinnitus|insomnia|sleep apn(?:o)?ea|anemia"
        r"|hypothyroidism|hashimoto'?s|high blood pressure|hypertension|low blood pressure|high cholesterol|gerd"
        r"|reflux"
        r"|acid reflux|endometriosis|pcos|gout|glaucoma|vertigo|narcolepsy|hay fever|allerg(?:y|ies)|a pacemaker"
        r"|a heart condition|(?:a )?bad (?:knee|back|hip|shoulder|eyesight)s?|chronic \w+(?: \w+)?|perfect pitch"
        r"|a stutter|a (?:\w+ ){0,3}(?:allergy|intolerance|disorder|condition|disease)|\w+ intolerance)"
    ),
    "state": (
        r"(?:single|married|divorced|engaged|widowed|separated|pregnant|retired|unemployed|self-employed|left-handed"
        r"|bipolar|a diabetic|a celiac|right-handed|ambidextrous|colou?r-?blind|deaf|blind|diabetic|dyslexic"
        r"|autistic|asthmatic|epileptic|celiac"
        r"|coeliac|lactose[- ]intolerant|gluten[- ]intolerant|gluten[- ]free|vegan|vegetarian|pescatarian|pescetarian"
        r"|halal|kosher|keto|sober|muslim|jewish|christian|catholic|hindu|buddhist|sikh|atheist|agnostic|mormon"
        r"|protestant|orthodox|gay|lesbian|bi(?:sexual)?|trans(?:gender)?|non-?binary|queer|straight|asexual"
        r"|bilingual"
        r"|trilingual|adopted|neurodivergent|short-sighted|near-?sighted|far-?sighted|hard of hearing"
        r"|estranged \w+ .+"
        r"|allergic|intolerant|nocturnal|introverted|extroverted|teetotal|religious|homeschooled|half[- ]\w+"
        r"|(?:american|british|english|scottish|welsh|irish|canadian|australian|german|french|italian|spanish"
        r"|portuguese"
        r"|dutch|belgian|swiss|austrian|polish|czech|russian|ukrainian|greek|turkish|indian|pakistani|bangladeshi"
        r"|chinese"
        r"|japanese|korean|vietnamese|thai|filipino|filipina|indonesian|malaysian|brazilian|mexican|argentin(?:e|ian)"
        r"|chilean|colombian|peruvian|nigerian|kenyan|ghanaian|ethiopian|egyptian|moroccan|iranian|iraqi|israeli"
        r"|lebanese|syrian|swedish|norwegian|danish|finnish|icelandic|hungarian|romanian|bulgarian|serbian|croatian"
        r"|slovak|slovenian|estonian|latvian|lithuanian|south african|new zealander|kiwi|puerto rican|cuban"
        r"|jamaican))"
    ),
    "sort": (
        r"(?:introvert|extrovert|ambivert|morning person|night owl|early bird|early riser|only child|twin|homebody|"
        r"foodie|cat person|dog person|people person|coffee (?:person|drinker|snob|addict)|tea (?:person|drinker)"
        r"|night"
        r" person|light sleeper|heavy sleeper|perfectionist|minimalist|vegan|vegetarian|pescatarian|smoker"
        r"|non-?smoker"
        r"|single (?:mom|mum|dad|parent|mother|father)|mother|father|mom|mum|dad|parent|grandmother|grandfather"
        r"|grandparent|widow|widower|veteran|immigrant|refugee|expat|homeowner|landlord|tenant|renter|runner|cyclist"
        r"|swimmer|climber|hiker|gamer|reader|gardener|beekeeper|birder|collector|surfer|skier|snowboarder|knitter"
        r"|volunteer|blood donor|night-shift \w+|(?:non-)?native speaker|citizen|dual citizen|muslim|christian"
        r"|catholic"
        r"|jew|hindu|buddhist|sikh|democrat|republican|feminist|(?:fan|member) of (?!it\b|this|that|them|these"
        r"|those)\w+|picky eater|slow learner|visual learner"
        r"|teetotall?er|vegetarian|vegan|scorpio|leo|virgo|libra|capricorn|aquarius|pisces|aries|taurus|gemini)"
    ),
    "thing": (
        r"(?:car|bike|bicycle|motorcycle|motorbike|scooter|van|truck|boat|house|home|apartment|flat|condo|cabin"
        r"|cottage"
        r"|allotment|garden|farm|studio|greenhouse|camper(?:van)?|rv|telescope|piano|guitar|drum kit|violin|cello"
        r"|business|company|startup|bakery|shop|store|restaurant|cafe|café|blog|podcast|youtube channel|newsletter"
        r"|etsy shop|degree|phd|ph\.d\.?|mba|masters?|master's|bachelor'?s|diploma|licen[cs]e|driving licen[cs]e|visa"
        r"|green card|passport|tattoos?|braces|glasses|contact lenses|hearing aids?|prosthe\w+|wheelchair|service dog"
        r"|guide dog|3d printer|iphone|pixel|android|macbook|thinkpad|kindle|ipad|xbox|playstation|ps5|switch|tesla"
        r"|subscription|membership|mortgage|student loans?|gym membership|season ticket|peanut allergy)"
    ),
    "dated": (
        r"(?:birthday|bday|b-day|anniversary|wedding(?: anniversary)?|appointment|appt|check-?up|exam|finals?"
        r"|midterm|test"
        r"|interview|flight|train|deadline|due date|surgery|operation|graduation|trip|vacation|holiday|concert"
        r"|recital"
        r"|party|baby shower|conference|visa|lease|contract|release(?: date)?|launch|audit|rent|tax return|move-in"
        r"|dissertation|thesis|paper|report|presentation|thesis defen[cs]e|defen[cs]e|viva|marathon|race"
        r"|competition|tournament|hearing|court date|move|moving date|start date|first day|last day|reunion|funeral"
        r"|mri|scan|consultation|class|course|semester|school year|passport|licen[cs]e|driving test|dentist(?: \w+)?"
        r"|gig"
        r"|show|performance|meeting|retreat|review|parole|payday|ceremony|audition)"
    ),
    "goal": (
        r"(?:learn|become|move|run|buy|save|lose|gain|visit|travel|start|get|quit|stop|retire|study|write|build|open"
        r"|launch"
        r"|finish|pass|graduate|improve|train|climb|hike|read|pay off|own|adopt|apply|master|cut|reduce|eat|exercise"
        r"|speak"
        r"|find|switch|publish|complete|compete|qualify|earn|reach|hit|grow|go|live|spend|see|swim|cycle|bike|bench"
        r"|be"
        r"|have|propose|marry|renovate|record|volunteer|sell|make|practi[cs]e|win|drink|walk|teach|stay|enroll|do"
        r"|work"
        r"|relocate|emigrate|immigrate|expand|hire|raise|release|get better|sign up|join|wake up|sleep)"
    ),
    "often": (
        r"(?:every (?:other |single |second )?(?:day|morning|night|evening|afternoon|week|weekend|month|year|summer"
        r"|winter"
        r"|spring|autumn|fall|christmas|\w+day)s?|(?:once|twice|three times|four times|five times|\w+ times|\d+x"
        r"|\d+ times)"
        r" (?:an?|per|every|each) \w+|daily|weekly|monthly|nightly|on (?:\w+day|weekday|weekend|week night"
        r"|weeknight)s"
        r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: (?:mornings|evenings|nights|afternoons)"
        r"|(?:,| and| &) (?:\w+days?))"
        r"|(?:most|all) (?:days|mornings|nights|evenings|weekends)|in the (?:mornings|evenings|afternoons)"
        r"|at weekends"
        r"|before (?:bed|work|breakfast)|after (?:work|dinner|lunch|school)|a day|a week|a month|per (?:day|week"
        r"|month)"
        r"|each (?:day|morning|night|week|month|year|evening)|year-round|around the clock|during the week"
        r"|on the weekend)"
    ),
    "end": r"(?: (?:now|anymore|again|too|as well|actually|though|by the way|btw|these days|nowadays|currently))*$",
}

_NAME = r"(?-i:[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω])[\w'’-]+"


def _expanded(pattern: str) -> str:
    pattern = re.sub(r"~([a-z]+)", lambda match: _VOCABULARY[match[1]], pattern)
    return pattern.replace("<v>", r"(?P<v>.+)").replace("<name>", _NAME)


_BEGINS = re.compile(r"(?:\(\?:(?:(?:i|we|my|our)(?: am| are| will be)?\|?)+\)|(?:i|we|my|our)) ")


class Row:
    """What a clause of one form says."""

    __slots__ = ("category", "confidence", "first", "kind", "pattern")

    def __init__(self, category: str, kind: Kind, confidence: float, pattern: str) -> None:
        """Read the pattern with its vocabularies written out."""
        self.category, self.kind, self.confidence = category, kind, confidence
        self.pattern = re.compile(_expanded(pattern), re.IGNORECASE)
        begins = _BEGINS.match(pattern)
        self.first = frozenset(re.findall(r"\b(?:i|we|my|our)\b", begins[0])) if begins else frozenset()


def _rows() -> tuple[Row, ...]:
    text = resources.files(__package__).joinpath("statements.txt").read_text(encoding="utf-8")
    lines = (line.split(" ", 3) for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(Row(category, Kind(kind), float(confidence), pattern) for category, kind, confidence, pattern in lines)


_ROWS = _rows()
_ROWS_OF = {
    word: tuple(row for row in _ROWS if not row.first or word in row.first) for word in ("", "i", "we", "my", "our")
}


def rows_of(word: str) -> tuple[Row, ...]:
    """Return the rows that a clause may match whose first word this is, in lower case, in their order."""
    return _ROWS_OF.get(word, _ROWS_OF[""])


CLAIMED: Mapping[str, str] = {
    "home": "personal", "employer": "work", "occupation": "work", "allergy": "personal", "diet": "personal",
    "regime": "personal", "vehicle": "personal", "birthday": "date", "birthplace": "personal", "origin": "personal",
    "age": "personal", "marital status": "relationship", "weight": "personal", "height": "personal", "boss": "work",
    "nickname": "personal",
}  # fmt: skip
"""Attributes that the reader of statements reads where no row does, and their categories."""
