"""Many statements of one shape: none contests another, and each is found first by its own words and by its question."""

from __future__ import annotations

import os

import pytest
from memory_client import Draft, Outcome

from tests.support import PATIENCE_S


def words(text: str) -> list[str]:
    return text.split()


NAMES = words("""
    Adler Becker Conti Dubois Engel Ferrer Garcia Haas Ivanov Jansen Kowalski Lund Moreau Novak Olsen Petrov
    Quist Rossi Silva Tanaka Ueda Varga Weber Xu Yilmaz Zeman Amari Bauer Costa Demir Eriksen Fischer Greco
    Horvat Ito Jung Keller Lopez Marin Nagy Ortiz Popov Quinn Ramos Sato Torres Urban Vega Wolff Yamada Zhou
    Abbas Bianchi Cohen Dvorak Evans Fontaine Gruber Hansen Iyer Jensen Klein Leroy Meyer Nilsson Orlov Perez
    Qureshi Ricci Santos Takeda Ulrich Vidal Winter Yusuf Zhang Arslan Brandt Chen Duarte Ekberg Fuchs Gomez
    Hoang Ibarra Jovanovic Kaya Lindgren Mehta Nowak Okafor Pavlov Rahman Schulz Thomsen Umarov Vogel Walsh
    Yang Ziegler
""")
TOWNS = words("""
    Aachen Bergen Cadiz Derby Essen Faro Genoa Hamar Izmir Jena Krakow Leeds Malaga Narvik Odense Parma Quebec
    Riga Seville Turin Ulm Verona Warsaw Xanten York Zagreb Alba Basel Cork Dover Evora Fulda Gdansk Halle
    Ivrea Jaca Kiel Lille Mainz Nantes Oulu Porto Quito Reims Siena Tampa Utica Vigo Wells Ypres Zwolle Arles
    Bremen Como Delft Elche Ferrol Ghent Hull Imola Javea Kassel Lugano Metz Namur Orvieto Pisa Queens Rouen
    Salem Tartu Umea Vaduz Worms Yuma Zadar Assen Bari Celle Dijon Emden Foggia Goa Haarlem Ipswich Jerez
    Kaunas Lyon Mons Nice Oxford Pavia Ravenna Split Trier Udine Vienna Wroclaw Yalta Zurich Avila
""")
THINGS = words("""
    kettle lamp ladder violin tent toaster drill mirror helmet canoe printer blanket compass wallet guitar
    basket hammer pillow camera bicycle shovel teapot curtain suitcase candle skateboard microscope umbrella
    whistle trumpet notebook backpack scooter telescope wheelbarrow saucepan bucket typewriter keyboard
    thermos hammock snorkel sled tripod projector globe piano sander grinder blender mixer vacuum heater fan
    anchor paddle racket puck saddle bridle stapler easel canvas loom spindle anvil chisel plane lathe vise
    wrench crowbar jack pump hose sprinkler rake hoe trowel mower trimmer chainsaw axe wedge mallet pulley
    winch crane hoist cart wagon barrel crate pallet jar vase urn tray platter ladle whisk grater funnel
""")
PLANTS = words("""
    basil mint fern rose tulip cactus orchid lily daisy ivy sage thyme rosemary lavender peony iris violet
    poppy clover lilac jasmine dahlia begonia azalea magnolia camellia hibiscus geranium petunia marigold
    sunflower foxglove heather holly juniper laurel maple oak birch willow cedar pine spruce larch elm ash
    beech alder poplar hazel walnut chestnut almond cherry plum peach pear quince fig olive lemon lime orange
    mandarin pomelo banana mango papaya guava avocado coconut date pomegranate persimmon kiwi melon pumpkin
    squash cucumber tomato pepper eggplant carrot radish turnip beet parsnip celery leek onion garlic shallot
    chive fennel dill parsley coriander rhubarb spinach kale chard lettuce cress sorrel okra
""")
MONTHS = words("January February March April May June July August September October November December")

# statement, question; {name}, {town}, {thing}, {plant} and {n} differ from instance to instance
SHAPES = {
    "visits": ("Anna visited the customer {name} in {town} on {day} {month}", "Who visited {name}?"),
    "invoices": ("Invoice {n} of {name} was paid", "Was invoice {n} paid?"),
    "orders": ("Order {n} was shipped to {town}", "Where was order {n} shipped to?"),
    "rooms": ("Room {n} belongs to {name}", "Whose is room {n}?"),
    "tickets": ("Ben closed ticket {n} about the {thing}", "Who closed ticket {n}?"),
    "meetings": ("I met Dr. {name} at a conference in {town}", "Where did I meet Dr. {name}?"),
    "purchases": ("I bought a {thing} for {n} euros", "How much did I pay for the {thing}?"),
    "loans": ("I lent my {thing} to {name}", "To whom did I lend my {thing}?"),
    "plants": ("I watered the {plant} on the balcony", "Did I water the {plant}?"),
    "birthdays": ("{name}'s birthday is on {day} {month}", "When is {name}'s birthday?"),
    "phones": ("{name}'s extension is {n}", "What is the extension of {name}?"),
    "homes": ("{name} lives in {town}", "Where does {name} live?"),
    "tastes": ("{name} likes {plant} tea", "What tea does {name} like?"),
    "trains": ("Train {n} leaves for {town} at noon", "Which train goes to {town}?"),
    "servers": ("Server {n} runs in {town}", "Where does server {n} run?"),
    "boxes": ("The {thing} is in box {n} in the cellar", "In which box is the {thing}?"),
    "calls": ("Called {name} about the {thing}", "Who was called about the {thing}?"),
    "readings": ("The meter in {town} showed {n}", "What did the meter in {town} show?"),
    "recipes": ("My recipe for {plant} soup needs {n} grams of butter", "How much butter goes into the {plant} soup?"),
    "teams": ("{name} joined the team in {town} in {month}", "Who joined the team in {town}?"),
}
COUNT = int(os.environ.get("MEMORYD_INSTANCES", "40"))  # of 100 that differ


def instance(n: int, text: str) -> str:
    return text.format(
        name=NAMES[n],
        town=TOWNS[n],
        thing=THINGS[n],
        plant=PLANTS[n],
        n=1000 + 37 * n,
        day=n % 28 + 1,
        month=MONTHS[n % 12],
    )


def test_the_vocabularies_tell_every_instance_apart():
    assert 20 == len(SHAPES)
    for words in (NAMES, TOWNS, THINGS, PLANTS):
        assert 100 == len(set(words[:100]))


@pytest.mark.parametrize("shape", SHAPES)
def test_instances_of_one_shape_are_each_found_first(daemon, shape):
    statement, question = SHAPES[shape]
    texts = [instance(n, statement) for n in range(COUNT)]
    with daemon.client(f"instances-{shape}", timeout_s=PATIENCE_S) as memory:
        results = memory.add_batch([Draft(content=text) for text in texts])
        assert [(Outcome.INSERTED, ())] * COUNT == [(result.outcome, result.contested_ids) for result in results]
        for asked in (texts, [instance(n, question) for n in range(COUNT)]):
            first = [memory.search(text, limit=3).hits[0].memory.content for text in asked]
            wrong = [(query, got) for query, text, got in zip(asked, texts, first, strict=True) if text != got]
            assert [] == wrong
