"""Tokens: genuine or nothing, narrowed and never widened, and the same bytes as every macaroon."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from pymacaroons import Macaroon, Verifier

from memoryd.errors import InvalidArgument, Unauthenticated
from memoryd.model import limits
from memoryd.model.grant import Permission
from memoryd.model.token import Caveats, attenuate, mint, parse_token

KEY = bytes(range(32))
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEARCH = frozenset({Permission.SEARCH})


def token(*caveats: str):
    return mint("k1", KEY, "g1", "t1", caveats)


def test_a_token_comes_back_in_its_parts_and_is_genuine():
    text = token(*Caveats(via="tcp").texts()).text()
    found = parse_token(text)
    assert ("k1", "g1", "t1", ('{"via": "tcp"}',)) == (found.key_id, found.grant_id, found.token_id, found.caveats)
    assert found.is_signed_with(KEY)
    assert not found.is_signed_with(bytes(32))


def test_any_changed_bit_makes_it_nothing():
    text = attenuate(token(*Caveats(via="tcp").texts()).text(), Caveats(permissions=SEARCH))
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    hint = range(3, 3 + len(b"memoryd"))  # where it is from: a hint for people, which nothing is decided by
    for place in set(range(len(raw))) - set(hint):
        for bit in range(8):
            changed = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
            try:
                found = parse_token(base64.urlsafe_b64encode(changed).decode().rstrip("="))
            except Unauthenticated:
                continue
            assert not found.is_signed_with(KEY), (place, bit)


def test_caveats_cannot_be_taken_away_swapped_or_moved_to_another_token():
    caveats = [*Caveats(permissions=SEARCH).texts(), *Caveats(via="tcp").texts()]
    full = parse_token(token(*caveats).text())
    for forged in ((), caveats[:1], caveats[1:], caveats[::-1]):
        found = type(full)(full.key_id, full.grant_id, full.token_id, tuple(forged), full.signature)
        assert not found.is_signed_with(KEY)
    elsewhere = type(full)(full.key_id, "g2", full.token_id, full.caveats, full.signature)
    assert not elsewhere.is_signed_with(KEY)


def test_attenuation_needs_no_key_and_adds_what_it_says():
    narrow = attenuate(token().text(), Caveats(permissions=SEARCH, chat_ids=frozenset({"b", "a"}), expire_time=NOW))
    found = parse_token(attenuate(narrow, Caveats(audience="s", via="tcp")))
    assert found.is_signed_with(KEY)
    assert [
        {"permissions": ["search"]},
        {"chat_ids": ["a", "b"]},
        {"expire_time": NOW.isoformat()},
        {"audience": "s"},
        {"via": "tcp"},
    ] == [json.loads(caveat) for caveat in found.caveats]
    assert [
        Caveats(permissions=SEARCH),
        Caveats(chat_ids=frozenset({"a", "b"})),
        Caveats(expire_time=NOW),
        Caveats(audience="s"),
        Caveats(via="tcp"),
    ] == Caveats.read(found.caveats)


def test_an_attenuation_that_says_nothing_is_refused():
    with pytest.raises(InvalidArgument, match="nothing is narrowed"):
        attenuate(token().text(), Caveats())
    with pytest.raises(InvalidArgument, match="no token"):
        attenuate("rubbish", Caveats(via="tcp"))


def test_so_many_caveats_and_no_more():
    text = token().text()
    for _ in range(limits.MAX_TOKEN_CAVEATS):
        text = attenuate(text, Caveats(via="tcp"))
    assert limits.MAX_TOKEN_CAVEATS == len(parse_token(text).caveats)
    with pytest.raises(InvalidArgument, match="at most"):
        attenuate(text, Caveats(via="tcp"))


def test_a_token_that_no_door_would_take_is_not_made():
    many = frozenset(f"{n}" + "x" * 100 for n in range(40))
    with pytest.raises(InvalidArgument, match="characters"):
        attenuate(token().text(), Caveats(chat_ids=many))


@pytest.mark.parametrize(
    "caveat",
    [
        "",
        "via = tcp",
        "{}",
        "[]",
        "null",
        '{"via": "tcp", "audience": "x"}',
        '{"via": ""}',
        '{"via": 1}',
        '{"user_id": "bob"}',
        '{"permissions": ["everything"]}',
        '{"permissions": "search"}',
        '{"permissions": [1]}',
        '{"chat_ids": {"a": 1}}',
        '{"expire_time": "soon"}',
        '{"expire_time": 5}',
        '{"expire_time": "0001-01-01T00:00:00+23:59"}',
        '{"expire_time": "9999-12-31T23:59:59-23:59"}',
        '{"expire_time": "2026-11-01T12:00:00"}',
        '{"a":' * 5000,
    ],
)
def test_an_unknown_caveat_denies(caveat):
    with pytest.raises(Unauthenticated, match="does not know"):
        Caveats.read([caveat])


def test_a_caveat_of_no_permissions_leaves_none():
    assert [Caveats(permissions=frozenset())] == Caveats.read(['{"permissions": []}'])


def test_rubbish_is_refused_and_nothing_else_happens():
    dice = random.Random(7)
    good = token(*Caveats(via="tcp").texts()).text()
    for text in ("", "=", "é", "A" * (limits.MAX_TOKEN_BYTES + 1), good[:-1], good + "AA", good[:20]):
        with pytest.raises(Unauthenticated):
            parse_token(text)
    for _ in range(2000):
        noise = base64.urlsafe_b64encode(b"\x02" + dice.randbytes(dice.randrange(80))).decode().rstrip("=")
        with pytest.raises(Unauthenticated):
            parse_token(noise)


def test_no_trace_shows_the_secret():
    found = token()
    assert found.text() not in repr(found)
    assert found.signature.hex() not in repr(found)


# --- the same construction as pymacaroons, both ways ---


def padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)


def test_another_implementation_reads_verifies_and_narrows_our_tokens():
    made = attenuate(token(*Caveats(via="tcp").texts()).text(), Caveats(permissions=SEARCH))
    theirs = Macaroon.deserialize(padded(made))
    assert b"1:k1:g1:t1" == theirs.identifier
    assert [b'{"via": "tcp"}', b'{"permissions": ["search"]}'] == [caveat.caveat_id for caveat in theirs.caveats]
    verifier = Verifier()
    verifier.satisfy_general(lambda caveat: json.loads(caveat) != {"via": "nowhere"})
    assert verifier.verify(theirs, KEY)
    expires = json.dumps({"expire_time": (NOW + timedelta(days=1)).isoformat()})
    theirs.add_first_party_caveat(expires)
    ours = parse_token(theirs.serialize().rstrip("="))
    assert ours.is_signed_with(KEY)
    assert expires == ours.caveats[-1]


def test_we_verify_what_another_implementation_made():
    theirs = Macaroon(location="elsewhere", identifier="1:k1:g1:t1", key=KEY, version=2)
    theirs.add_first_party_caveat('{"via": "tcp"}')
    ours = parse_token(theirs.serialize().rstrip("="))
    assert ours.is_signed_with(KEY)
    assert token('{"via": "tcp"}').signature == ours.signature
