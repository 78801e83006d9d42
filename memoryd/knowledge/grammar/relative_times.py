"""Whether a statement says when in words that mean something only on the day they were said: "next week"."""

from __future__ import annotations

import re

__all__ = ["has_relative_time"]

MOST_CHARACTERS = 1000  # that are read: half a millisecond
_OTHER_LANGUAGES = re.compile(
    # German
    r"\b(?:heute|gestern|vorgestern|morgen|übermorgen|neulich|kürzlich|demnächst|bald|gerade|derzeit|momentan"
    r"|seit kurzem|(?:nächste|letzte|diese|kommende|vorige|vergangene)[nrsm]? (?:woche|monat|jahr|wochenende|mal"
    r"|quartal|sommer|winter|frühling|herbst|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)"
    r"|(?:vor|in|seit) (?:\d+|einer|einem|zwei|drei|vier|fünf|sechs|ein paar|einigen)"
    r" (?:minute|stunde|tag|woche|monat|jahr)\w*"
    # French
    r"|aujourd['’]hui|hier|avant-hier|demain|après-demain|bientôt|récemment|actuellement|en ce moment"
    r"|(?:la semaine|le mois|l['’]année|l['’]an|le week-end|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
    r" (?:prochaine?|dernière?|passée?)|cette (?:semaine|année)|ce (?:mois|soir|matin|week-end)"
    r"|(?:il y a|dans|depuis) (?:\d+|une?|deux|trois|quatre|quelques) (?:minute|heure|jour|semaine|mois|an)\w*"
    # Spanish and Portuguese
    r"|hoy|ayer|anteayer|mañana|pasado mañana|recientemente|actualmente|pronto|hoje|ontem|anteontem|amanhã|recentemente"
    r"|(?:la semana|el mes|el año|el fin de semana|el (?:lunes|martes|miércoles|jueves|viernes|sábado|domingo))"
    r" (?:que viene|próxim[oa]|pasad[oa])|(?:la próxima semana|el próximo (?:mes|año))|est[ea] (?:semana|mes|año)"
    r"|(?:hace|dentro de|há|daqui a) (?:\d+|una?|dos|tres|um|uma|dois|três|unos|pocos)"
    r" (?:minuto|hora|día|dia|semana|mes|mês|año|ano)\w*"
    r"|(?:a semana|o mês|o ano) (?:que vem|passad[oa])|(?:na )?próxima semana"
    # Italian
    r"|oggi|ieri|l['’]altro ieri|domani|dopodomani|di recente|recentemente|attualmente"
    r"|(?:la settimana|il mese|l['’]anno) (?:prossim[oa]|scors[oa])|questa settimana|questo mese"
    # Russian
    r"|сегодня|завтра|послезавтра|вчера|позавчера|недавно|скоро|сейчас"
    r"|(?:на|в) (?:этой|прошлой|следующей|будущей) неделе|в (?:этом|прошлом|следующем|будущем) (?:месяце|году)"
    r"|(?:через|спустя) (?:\d+ |неделю|месяц|год|пару|несколько)\w*"
    r"|(?:секунд|минут|час|дн|день|недел|месяц|год|лет)\w* назад"
    # Arabic
    r"|اليوم|غدا|غدًا|أمس|بعد غد|أول أمس|الآن|قريبا|مؤخرا"
    r"|(?:الأسبوع|الشهر|العام|السنة) (?:القادم|القادمة|الماضي|الماضية|المقبل))\b"
    # Chinese, Japanese and Korean, which have no spaces between words
    r"|今天|明天|后天|後天|昨天|前天|今晚|今早|[上下这這本]个?個?(?:周|週|星期|礼拜|禮拜|月)|[今明去后後前]年|最近|刚才|剛才|现在|現在"
    r"|[\d一二三四五六七八九十两兩几幾]+个?個?(?:天|周|週|星期|月|年|小时|小時)[前后後]"
    r"|今日|明日|明後日|昨日|一昨日|今夜|今朝|[先今来再]週|[先今来再]月|[昨来]年|さっき|先ほど|もうすぐ"
    r"|오늘|내일|모레|어제|그저께|지난\s?(?:주|달|해)|다음\s?(?:주|달|해)|이번\s?(?:주|달)|작년|내년|요즘|방금",
)
_UNIT = r"(?:second|minute|hour|day|week|weekend|month|quarter|semester|year|decade)s?"
_COUNT = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|several|some|a few|few|a couple of)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|nowadays|recently|lately|soon|currently|presently|later|right now|just now"
    r"|now|at the moment|these days|so far|for now|from now on|the other day|the day (?:after|before)"
    rf"|(?:this|next|last|past|previous|coming|following|upcoming) (?:{_COUNT} )?(?:{_UNIT}|morning|afternoon|evening"
    rf"|night|spring|summer|autumn|fall|winter|term|time|{_WEEKDAY}|{_MONTH})"
    rf"|{_COUNT} (?:more )?{_UNIT} (?:ago|later|earlier|from now|before|after)|in {_COUNT} (?:more )?{_UNIT}"
    rf"|(?:for|within|over) the (?:next|last|past) (?:{_COUNT} )?{_UNIT}"
    rf"|(?<!every )(?<!each ){_WEEKDAY}(?! ?s)"  # "on Mondays" is a habit
    rf"|(?:in|since|by|until|till|before|after|early|late|mid|end of|\d(?:st|nd|rd|th)?(?: of)?) {_MONTH}"
    r"(?!,? (?:\d{1,2}(?:st|nd|rd|th)?,? )?(?:19|20)\d\d)"  # a month without its year
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?!,? (?:19|20)\d\d))\b",
)


def has_relative_time(text: str) -> bool:
    """Return whether a text needs the day on which it was said to be understood; of a long one it is taken for sure."""
    if len(text) > MOST_CHARACTERS:
        return True
    lower = text.lower()  # a quarter of the time of patterns that ignore case (measured)
    return bool(_RELATIVE.search(lower) or _OTHER_LANGUAGES.search(lower))
