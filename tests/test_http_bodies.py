"""A body in JSON is refused by the field that is wrong, and before it swells."""

from __future__ import annotations

import pytest

from tests.http_helpers import Caller, outcome_of

ADD = "MemoryService/AddMemory"


@pytest.mark.parametrize(
    ("body", "said", "field"),
    [
        ("{", "is no JSON", ""), ("[]", "JSON object", ""), ('"x"', "JSON object", ""), ("3", "JSON object", ""),
        ("nul", "JSON", ""), ("[" * 200_000, "JSON object", ""), ('{"content": ' * 40_000, "nested", ""),
        (b"\xff\xfe", "utf-8", ""), ('{"a":' + "9" * 5000 + "}", "", ""),
        ('{"content": 3}', "content must be a string", "content"),
        ('{"contents": "x"}', "no field named 'contents'; did you mean 'content'?", "contents"),
        ('{"content": "a", "content": "b"}', "content is there twice", "content"),
        ('{"eventTime": "yesterday"}', "must be a time with a zone, such as 2026-05-03T12:00:00Z", "eventTime"),
        ('{"eventTime": "2026-05-03"}', "must be a time with a zone, such as", "eventTime"),
        ('{"eventTime": 5}', "must be a time with a zone, such as", "eventTime"),
        ('{"kind": "FACT"}', "kind must be one of MEMORY_KIND_FACT, ", "kind"),
        ('{"tags": "food"}', "tags must be a list, and each item of it a string", "tags"),
        ('{"tags": ["a", 3]}', "tags[1] must be a string", "tags[1]"),
        ('{"metadata": ["x"]}', "metadata must be an object, and each value of it a string", "metadata"),
        ('{"kind": 1e400}', "kind must be one of", "kind"),
        ('{"confidence": " at a' + "." * 300_000 + '!"}', "", "confidence"),
        ('{"' + "x" * 300_000 + '": 1}', "has no field named", "x" * 128),
        ('{"confidence": "NaN2"}', "confidence must be a number", "confidence"),
        ('{"shared": "true"}', "shared must be true or false", "shared"),
        ('{"source": {"channnel": "x"}}', "did you mean 'channel'?", "source.channnel"),
        ('{"source": {"messageIds": [1]}}', "source.messageIds[0] must be a string", "source.messageIds[0]"),
        ('{"source": "me"}', "source must be an object", "source"), ('{"source": [1]}', "must be an object", "source"),
        ('{"eventTime": "2026-05-03T12:00:00"}', "a time with a zone", "eventTime"),
        ('{"expiresDays": 1, "expires_days": "x"}', "are one field", "expires_days"),
        ('{"content": "\\ud800"}', "half of a surrogate pair", "content"),
        ('{"tags": "\\ud800"}', "", "tags"), ('{"metadata": "\\ud800"}', "", "metadata"),
        ('{"confidence": "\\ud800"}', "", "confidence"), ('{"kind": "\\ud800"}', "surrogate", "kind"),
        ('{"tags": ["\\uDFFF"]}', "surrogate", "tags"), ('{"kind": [["\\ud800"]]}', "", "kind"),
        ('{"\\ud800": 1}', "surrogate", ""), ('{"metadata": {"\\ud800": "x"}}', "surrogate", ""),
    ],
)  # fmt: skip
def test_a_body_that_is_none_is_refused_in_one_short_line(world, http, body, said, field):
    caller = Caller(http, world.token(chat_ids=()))
    answer = http.post(f"/memoryd.v1.{ADD}", content=body, headers=caller.headers)
    told = answer.json()
    assert ((400, "invalid_argument"), True) == ((answer.status_code, told["code"]), said in told["message"]), told
    assert "\n" not in told["message"]
    assert len(told["message"]) <= 500
    assert "Available Fields" not in told["message"]
    named = [
        one["debug"]["fieldViolations"][0]["field"] for one in told["details"] if "fieldViolations" in one["debug"]
    ]
    assert ([field] if field else []) == named


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"requests": [' + ",".join(["{}"] * 1_300_000) + "]}", "more than 32768 fields"),
        ('{"tags": [' + ",".join(['""'] * 150_000) + "]}", "tags has more than 1024 items"),
        ('{"metadata": {' + ",".join(f'"{n}":""' for n in range(40_000)) + "}}", "more than 32768 fields"),
    ],
    ids=["objects", "items", "names"],
)
def test_json_that_would_swell_is_counted_before_it_does(world, http, body, said):
    name = "MemoryService/BatchAddMemories" if "requests" in body else ADD
    answer = http.post(f"/memoryd.v1.{name}", content=body, headers=Caller(http, world.token(chat_ids=())).headers)
    assert (429, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")) == (answer.status_code, outcome_of(answer))
    assert said in answer.json()["message"]


def test_of_a_batch_the_item_is_named(world, http):
    caller = Caller(http, world.token(chat_ids=()))
    for body, field in (
        ('{"requests": [{"content": "a"}, {"content": 5}]}', "requests[1].content"),
        ('{"requests": [{"content": "a"}, {"contnt": "b"}]}', "requests[1].contnt"),
        ('{"requests": [{"content": "a", "source": {"messageIds": ["a", 3]}}]}', "requests[0].source.messageIds[1]"),
        ('{"requests": ["a"]}', "requests[0]"),
    ):
        answer = http.post("/memoryd.v1.MemoryService/BatchAddMemories", content=body, headers=caller.headers).json()
        assert [field] == [
            one["debug"]["fieldViolations"][0]["field"]
            for one in answer["details"]
            if "fieldViolations" in one["debug"]
        ]


def test_metadata_that_is_named_as_a_mask_stays_as_it_is(world, http):
    caller = Caller(http, world.token(user_id="masked", chat_ids=()))
    given = {"update_mask": "my_value_here", "updateMask": "an_other"}
    added = caller.told(ADD, {"content": "I keep bees", "metadata": given})
    assert given == added["result"]["memory"]["metadata"]
