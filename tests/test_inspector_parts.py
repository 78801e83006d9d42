"""What the pages of the inspector are made of: marks, pictures, figures, and whose request it is."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.errors import Unavailable
from memoryd.inspector.drawing import lines, points_in_time
from memoryd.inspector.entry import Entry
from memoryd.inspector.figures import PLOTS, Figures, Reading, parse, quantile
from memoryd.inspector.graph import Person, drawn
from memoryd.inspector.shown_text import MOST_LINES, MOST_SHOWN, as_block, as_line, beginning, in_words, is_cut, marked
from memoryd.inspector.times import span, zone
from memoryd.web.names import names_of


def test_marks_stand_for_what_cannot_be_seen():
    assert '<bdi class="text">a<span class="mark" title="U+202E right-to-left override">U+202E</span>b</bdi>' == str(
        as_block("a\u202eb")
    )
    assert "<b>" not in as_block("<b>\u200b")
    assert "a\nb\tc" in as_block("a\nb\tc")
    assert "line break" in as_line("a\nb")
    assert "a[U+202E]<b" == in_words("a\u202e<b", 40)


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👨\u200d👩\u200d👧",
        "❤\ufe0f",
        "1\ufe0f⃣",
        "葛\U000e0100",
        "नमस्\u200dते",
        "a\u00a0b",
        "あ\u3000い",
        "é́",
    ],
)
def test_what_joins_and_chooses_forms_is_left_where_it_belongs(text):
    assert "mark" not in marked(text)


@pytest.mark.parametrize(
    "text",
    ["con\u200dfirmed", "Sarah\u200d", "a\ufe01", "a\ufe0f\ufe0f", "a\U000e0100", "a\u180bb", "a\u2009b", "a\u200ab",
     "x\u0336", "\u200d", "👩\u200d", "a\u2060b", "\U00016fe4", "a\u115fb"],
)  # fmt: skip
def test_what_hides_elsewhere_is_marked(text):
    assert "mark" in marked(text)


def test_marks_take_no_more_room_than_a_page_has():
    assert "12 hidden characters" in marked("a" + "\u0301" * 20)  # they would cover the lines above
    assert "250000 hidden characters" in marked("\x01" * 250_000)
    assert len(marked("a\x01" * 125_000)) < 1_000_000
    assert 60 == marked("a\x01" * 1000).count("mark")
    assert 940 == marked("a\x01" * 1000).count("▯")


def test_a_list_shows_the_beginning_and_a_line_both_ends():
    assert not is_cut("x" * MOST_SHOWN)
    assert is_cut("x" * (MOST_SHOWN + 1))
    assert not is_cut("\n" * (MOST_LINES - 1))
    assert (is_cut("\n" * 7000), MOST_LINES - 1) == (True, beginning("\n" * 7000).count("\n"))
    assert str(as_block(beginning("x" * 9000), "x" * 9000)).endswith("x…</bdi>")
    assert "…" not in as_block("x", "x")
    assert as_line("a" * 300 + "b") != as_line("a" * 300 + "c")
    assert as_line("runbook") != as_line("runbook ")
    assert "U+0020 space" in as_line(" runbook")
    assert str(as_line("  ")).count("mark") == 1


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
        counted = {("rpc_server_call_duration_seconds_count", (("rpc_method", "AddMemory"),)): value}
        figures.take(Reading(now + timedelta(seconds=5 * n), {**counted, ("memoryd_memories", ()): value}))
    titles = [plot.title for plot in PLOTS]
    assert ("AddMemory", [0.6, None]) == figures.lines(titles.index("Calls a second"))[1]
    assert [("memories", [4.0, 2.0])] == figures.lines(titles.index("Memories that are stored"))
    assert ("SearchMemories", [None, None]) == figures.lines(0)[0]


def test_where_nothing_was_read_for_a_while_a_line_has_a_gap():
    now = datetime.now(UTC)
    figures = Figures(lambda: now)
    for seconds in (0, 5, 10, 60, 65):
        figures.take(Reading(now + timedelta(seconds=seconds), {("memoryd_memories", ()): 7.0}))
    n = [plot.title for plot in PLOTS].index("Memories that are stored")
    assert [("memories", [7.0, 7.0, None, 7.0])] == figures.lines(n)


async def test_figures_are_read_again_soon_after_a_daemon_was_away():
    class Daemon:
        faults = [Unavailable("away"), Unavailable("away")]  # noqa: RUF012  used up

        async def metrics(self):
            if self.faults:
                raise self.faults.pop()
            return "memoryd_memories 1"

    figures = Figures(lambda: datetime.now(UTC), pause_s=0.001)
    async with figures.watching(Daemon()):
        await asyncio.sleep(0.2)
        assert figures.latest
        assert "" == figures.fault


async def test_figures_are_read_as_long_as_someone_looks():
    class Daemon:
        asked = 0

        async def metrics(self):
            Daemon.asked += 1
            return "memoryd_memories 1"

    clock = [datetime.now(UTC)]
    figures = Figures(lambda: clock[0], pause_s=0.001)
    figures.note_look()
    async with figures.watching(Daemon()):
        await asyncio.sleep(0.05)
        assert Daemon.asked > 1
        clock[0] += timedelta(minutes=6)
        await asyncio.sleep(0.02)
        seen = Daemon.asked
        await asyncio.sleep(0.05)
        assert seen == Daemon.asked
        figures.note_look()
        await asyncio.sleep(0.05)
        assert seen < Daemon.asked


def test_a_plot_has_a_scale_and_gaps():
    times = [datetime.now(UTC) + timedelta(seconds=n) for n in range(4)]
    picture = str(lines(times, [("a", [1.0, None, 3.0, 7.0]), ("<b>", [0.0] * 4)], "ms", "how long"))
    assert "10 ms" in picture
    assert "1 s" in lines(times[:2], [("a", [400.0, 900.0])], "ms", "how long")
    assert "<b>" not in picture
    [path] = re.findall(r'class="line line-1" d="([^"]+)"', picture)
    assert 2 == path.count("M")
    assert "Nothing was measured" in lines(times[:1], [("a", [1.0])], "", "")


@pytest.mark.parametrize(
    ("host", "more"),
    [("", set()), ("127.0.0.1", set()), ("::1", set()), ("127.0.0.2", {"127.0.0.2"}), ("::", {"[::]"})],
)
def test_a_server_answers_to_loopback_and_its_host_as_requests_name_it(host, more):
    assert names_of(host) == {"127.0.0.1", "localhost", "[::1]"} | more


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


def test_the_ends_of_a_line_of_time_have_hours_where_they_are_near_and_are_local(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        first = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
        assert ("2026-01-01 17:45",) == span(first, first)
        assert ("2026-01-01 17:45:00", "2026-01-01 17:45:09") == span(first, first + timedelta(seconds=9))
        assert ("2026-01-01 17:45", "2026-01-02 04:45") == span(first, first + timedelta(hours=11))
        assert ("2026-01-01", "2026-01-05") == span(first, first + timedelta(days=4))
        assert "UTC+05:45" == zone(first)
        picture = points_in_time([("stored", [first]), ("<b>", [first + timedelta(hours=11)])], "when")
        assert ["0.00", "100.00"] == re.findall(r'cx="([\d.]+)%"', picture)
        assert "<b>" not in picture
        assert 'cx="50.00%"' in points_in_time([("stored", [first])], "when")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "" == points_in_time([("stored", [])], "when")


def test_a_reading_alone_is_a_point_and_bytes_have_the_units_of_the_other_pages():
    times = [datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(4)]
    drawn = lines(times, [("bytes", [None, 20_480.0, None, None])], "B", "Bytes")
    assert 1 == drawn.count('class="line alone line-1"')
    assert ["20.0 KiB", "10.0 KiB", "0 B"] == re.findall(r"<span>([\d.]+ \w+)</span>", drawn)
    assert "k B" not in drawn
    joined = lines(times, [("calls", [1.0, 2.0, None, None])], "ms", "Calls")
    assert "alone" not in joined
