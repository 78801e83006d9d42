"""What has been said otherwise since never stands alone, with the packaged model and by the commands."""

from __future__ import annotations

import json


def test_the_car_that_was_sold_is_not_told_of_alone(memory):
    memory("add", "I drive an old Volvo V50")
    memory("add", "We sold the Volvo, we have a Kia e-Niro now")
    shown = memory("search", "What car do I drive?")[1]
    assert "Kia e-Niro" in shown
    (hit, *_) = json.loads(memory("search", "--json", "--limit", "1", "What car do I drive?")[1])["hits"]
    told = hit["memory"]["content"] + ((hit["newer"] or {}).get("content") or "")
    assert "Kia e-Niro" in told
    assert "Kia e-Niro" in memory("context", "What car do I drive?")[1]


def test_the_line_of_a_hit_names_the_newer_one_with_its_id_and_day(memory):
    memory("add", "I work as a teacher")
    newer = json.loads(memory("add", "--json", "I work as a plumber")[1])["memory"]
    line = memory("search", "--limit", "1", "Do I work as a teacher?")[1]
    assert f"[contested by the newer: I work as a plumber, {newer['id'][:8]}, " in line
    assert "[contested by " + newer["id"][:8] not in line
