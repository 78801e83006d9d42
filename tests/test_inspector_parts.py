"""What the pages of the inspector are made of: marks, pictures, figures, and whose request it is."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.inspector.drawing import lines
from memoryd.inspector.entry import Entry
from memoryd.inspector.figures import Figures, Reading, parse, quantile
from memoryd.inspector.graph import Person, drawn
from memoryd.inspector.shown_text import MOST_SHOWN, as_block, as_line, in_words


def test_marks_stand_for_what_cannot_be_seen():
    assert '<bdi class="text">a<span class="mark" title="U+202E right-to-left override">U+202E</span>b</bdi>' == str(
        as_block("a\u202eb")
    )
    assert "<b>" not in as_block("<b>\u200b")
    assert "می\u200cخواهم" in as_block("می\u200cخواهم")
    assert "👨\u200d👩\u200d👧" in as_line("👨\u200d👩\u200d👧")
    assert 52 == as_block("a" + "\u0301" * 60).count("mark")
    assert "a\nb\tc" in as_block("a\nb\tc")
    assert "U+000A" in as_line("a\nb")
    assert "a[U+202E]<b" == in_words("a\u202e<b", 40)
    assert "…</bdi>" == str(as_block("x" * (MOST_SHOWN + 1), MOST_SHOWN))[-7:]
    assert "…" not in as_block("x" * MOST_SHOWN, MOST_SHOWN)


def test_a_picture_holds_names_as_text():
    people = [Person("a", '</text><script>"', "/x?a=1&b=2", "\u202ewife", 3), Person("b", "Tom", "/y")]
    picture = str(drawn("<alice>", people, {("a", "b"): 2}))
    assert "<script" not in picture
    assert "/x?a=1&amp;b=2" in picture
    assert "[U+202E]wife" in picture
    assert picture == str(drawn("<alice>", people, {("a", "b"): 2}))
    numbers = [float(one) for one in re.findall(r'c[xy]="(-?\d+)"', picture)]
    assert all(0 <= number <= 760 for number in numbers)


def test_figures_are_read_and_their_quantiles_are_those_of_prometheus():
    text = 'a_bucket{le="0.1"} 2\na_bucket{le="1.0"} 4\na_bucket{le="+Inf"} 4\nb{x="q\\"}"} 3\n# HELP\nbroken{\n'
    found = parse(text)
    assert 3 == found["b", (("x", 'q\\"}'),)]
    reading = Reading(datetime.now(UTC), found)
    assert [(0.1, 2.0), (1.0, 4.0), (float("inf"), 4.0)] == reading.buckets("a")
    assert 0.05 == quantile([], reading.buckets("a"), 0.25)
    assert 0.55 == pytest.approx(quantile([], reading.buckets("a"), 0.75))
    assert quantile(reading.buckets("a"), reading.buckets("a"), 0.5) is None
    figures = Figures(lambda: datetime.now(UTC))
    now = datetime.now(UTC)
    for n, value in enumerate((1.0, 4.0, 2.0)):  # the last: it was started again
        figures.readings.append(Reading(now + timedelta(seconds=5 * n), {("c", ()): value}))
    assert [0.6, None] == figures.rates("c")
    assert [4.0, 2.0] == figures.levels("c")


def test_a_plot_has_a_scale_and_gaps():
    times = [datetime.now(UTC) + timedelta(seconds=n) for n in range(4)]
    picture = str(lines(times, [("a", [1.0, None, 3.0, 7.0]), ("<b>", [0.0] * 4)], "ms", "how long"))
    assert "10 ms" in picture
    assert "<b>" not in picture
    [path] = re.findall(r'line-1" d="([^"]+)"', picture)
    assert 2 == path.count("M")
    assert "Nothing was measured" in lines(times[:1], [("a", [1.0])], "", "")


def test_a_host_of_a_request_is_ours_or_not():
    entry = Entry(8642, secrets.token_urlsafe)
    for host, ours in (
        ("127.0.0.1:8642", True), ("localhost:8642", True), ("[::1]:8642", True), ("127.0.0.1", False),
        ("localhost.evil:8642", False), ("", False), ("127.0.0.1:86420", False), ("[::1]", False),
    ):  # fmt: skip
        assert ours == entry.is_ours(host), host
    assert Entry(None, secrets.token_urlsafe).is_ours("localhost:1")
    assert Entry(None, secrets.token_urlsafe).is_ours("localhost")
    assert not Entry(None, secrets.token_urlsafe).is_ours("evil")
