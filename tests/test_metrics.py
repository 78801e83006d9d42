"""Figures for Prometheus: bounded, anonymous, read where only those may who should, and named as the dashboard does."""

from __future__ import annotations

import json
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import yaml
from memory_client import MessageDraft
from prometheus_client.parser import text_string_to_metric_families

from memoryd.daemon.config import Config, MetricsConfig
from memoryd.daemon.config_key import ConfigError
from memoryd.daemon.metrics import Metrics, is_measured
from memoryd.errors import StartupError, Unavailable
from memoryd.metrics.endpoint import Endpoint, address_of
from memoryd.metrics.figures import EVENTS, LEVELS, QUANTITIES, Figures
from memoryd.metrics.sample import Sample
from memoryd.model.measures import Event, Level, Quantity
from tests.support import running, short_folder

DEPLOY = Path(__file__).parent.parent / "deploy"
MOST_SERIES = 1500
WORDS = {
    "absent",
    "and",
    "unless",
    "by",
    "count_over_time",
    "last_over_time",
    "min_over_time",
    "offset",
    "or",
    "deriv",
    "histogram_quantile",
    "increase",
    "le",
    "predict_linear",
    "rate",
    "sum",
    "time",
}
"""Of expressions, that are no figures."""


def series(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def names(text: str) -> set[str]:
    return {re.split(r"[ {]", line, maxsplit=1)[0] for line in series(text)}


def scraped(path: Path) -> str:
    """Return the figures as a scraper reads them from a Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: memoryd\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200"), head
    return body.decode()


def test_the_number_of_series_is_bounded_whatever_is_measured():
    figures = Figures(list)
    for n in range(3000):
        figures.measure(Quantity.RPC, 0.001 * n, f"Made{n}", "OK" if n % 2 else f"CODE{n % 17}", f"door{n % 4}")
        figures.measure(Quantity.STORE, 0.1, f"what{n}")
        figures.measure(Quantity.MODEL, 0.1, "embeddings")
        figures.measure(Quantity.JOB, 5, f"job{n}")
        figures.count(Event.REFUSED, f"reason{n}")
        figures.count(Event.JOB_RUN, f"job{n}", "done")
        figures.change(Level.CALLS, 1, "admin")
    text = figures.text().decode()
    other = [line for line in series(text) if 'rpc_method="other"' in line]
    assert {"OK", "other"} == {re.search(r'status_code="(\w+)"', line)[1] for line in other}
    rpc = [line for line in series(text) if line.startswith("rpc_server_call_duration_seconds_count")]
    assert 3000 == sum(float(line.rpartition(" ")[2]) for line in rpc)
    assert 3000 == sum(float(line.rpartition(" ")[2]) for line in series(text) if line.startswith("memoryd_refused"))
    assert len(rpc) <= 88
    usual = [line for line in series(text) if not re.match("db_client|memoryd_job", line)]  # their labels are few
    assert len(usual) <= MOST_SERIES


def test_every_quantity_event_and_level_has_its_words_and_is_parsed_by_the_library():
    figures = Figures(lambda: [Sample("memoryd_x_total", "X.", 3, (("kind", "a"),)), Sample("memoryd_y", "Y.", 1.5)])
    for quantity, (_, labels, _) in QUANTITIES.items():
        figures.measure(quantity, 0.02, *(f"l{n}" for n in range(len(labels))))
    for event, (_, labels) in EVENTS.items():
        figures.count(event, *(f"l{n}" for n in range(len(labels))), number=2)
    for level, (_, labels) in LEVELS.items():
        figures.change(level, -1, *(f"l{n}" for n in range(len(labels))))
    assert (set(Quantity), set(Event), set(Level)) == (set(QUANTITIES), set(EVENTS), set(LEVELS))
    families = {family.name: family for family in text_string_to_metric_families(figures.text().decode())}
    for quantity in Quantity:
        values = {sample.name: sample.value for sample in families[quantity].samples if "le" not in sample.labels}
        assert {f"{quantity}_count": 1, f"{quantity}_sum": pytest.approx(0.02)} == values
    for event in Event:
        assert 2 == families[event.removesuffix("_total")].samples[0].value
    assert -1 == families["memoryd_calls_in_flight"].samples[0].value
    assert 3 == families["memoryd_x"].samples[0].value
    assert 1.5 == families["memoryd_y"].samples[0].value


@pytest.fixture(scope="module")
def exposed() -> Iterator[tuple[str, list[str], int]]:
    """The figures of a daemon that was used, what must not stand in them, and how many series there were at first."""
    with short_folder() as folder:
        (folder / "backup").mkdir()
        sock = folder / "metrics.sock"
        config = (
            f'[metrics]\nlisten = "{sock}"\n[backup]\ndirectory = "{folder / "backup"}"\nship_s = 1\n'
            '[embedding]\nprovider = "none"\n'
        )
        with running(folder, config=config) as daemon:
            assert 0o600 == sock.stat().st_mode & 0o777
            secrets = ["alice", "zanzibar", "carol"]
            client = daemon.client()
            secrets.append(client.add("I went to Zanzibar").memory.id)
            secrets.append(client.append("thread-of-carol", [MessageDraft(content="zanzibar")]).messages[0].id)
            client.search("zanzibar")
            client.search("qwertz")
            client.run_job("backup")
            first = len(series(scraped(sock)))
            for n in range(300):
                client.acting_for(user_id=f"carol{n}").search("zanzibar")
            with grpc.insecure_channel(daemon.endpoint) as channel:
                for n in range(100):
                    call = channel.unary_unary(f"/memoryd.v1.MemoryService/Zanzibar{n}")
                    with pytest.raises(grpc.RpcError):
                        call(b"", timeout=10)
            text = scraped(sock)
            assert names(client.metrics()) == names(text)
        assert not sock.exists()
        yield text, secrets, first


def test_a_daemon_tells_what_happened_and_nothing_of_whom(exposed):
    text, secrets, first = exposed
    for secret in secrets:
        assert secret.lower() not in text.lower()
    assert len(series(text)) - first <= 30  # of one method more: unknown, and of the job that ends meanwhile
    assert len(series(text)) <= MOST_SERIES
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in series(text)}
    label = '{door="admin",rpc_method="SearchMemories",rpc_response_status_code="OK"}'
    assert 302 == values[f"rpc_server_call_duration_seconds_count{label}"]
    unknown = '{door="admin",rpc_method="unknown",rpc_response_status_code="UNIMPLEMENTED"}'
    assert 100 == values[f"rpc_server_call_duration_seconds_count{unknown}"]
    assert 1 == values['memoryd_adds_total{outcome="inserted"}']
    assert values["memoryd_searches_empty_total"] >= 300
    assert (1, 1) == (values["memoryd_memories"], values["memoryd_messages"])
    assert 0 == values['memoryd_calls_in_flight{door="admin"}']
    assert values["memoryd_ship_lag_seconds"] < 60
    assert values["memoryd_writer_commit_seconds_count"] > 1


def expressions() -> Iterator[tuple[str, str]]:
    for rule in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]
    for panel in json.loads((DEPLOY / "grafana" / "memoryd.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def used_in(expression: str) -> set[str]:
    """Return the names of figures in an expression: what is no function, label, text or duration."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[\w+\]|(?:by|on) \([^)]*\)', " ", expression)
    return set(re.findall(r"[a-z_]{2,}", bare)) - WORDS


def test_each_alert_and_panel_names_figures_that_there_are(exposed):
    there = names(exposed[0]) | {
        f"{name}{end}" for name, (_, labels, _) in QUANTITIES.items() for end in ("_bucket", "_count", "_sum") if labels
    }
    there |= {"up", *EVENTS, "memoryd_job_last_success_timestamp_seconds", "memoryd_disk_free_bytes"}
    asked = list(expressions())
    assert len(asked) > 35
    for title, expression in asked:
        assert used_in(expression), title
        assert used_in(expression) <= there, title
    used = re.findall(r'[{,]([a-z_]+)="', exposed[0]) + [label for _, labels in EVENTS.values() for label in labels]
    labels = {*(label for _, labels, _ in QUANTITIES.values() for label in labels), *used}
    assert not labels & {"job", "instance"}, "a scrape puts its own there, and ours would be renamed"
    for title, expression in asked:
        grouped = ",".join(re.findall(r"(?:by|on) \(([^)]*)", expression))
        asks = {*re.findall(r"[{,]\s*(\w+)\s*(?:=|!)", expression), *re.findall(r"\w+", grouped)}
        assert asks <= labels | {"job", "instance"}, title
    reasons = re.findall(r'reason=~?"([^"]*)"', " ".join(expression for _, expression in asked))
    for reason in "|".join(reasons).split("|"):
        assert f'memoryd_refused_total{{reason="{reason}"}} ' in exposed[0], "from the start"
    for job in re.findall(r'job_name="([^"]*)"', exposed[0]):
        assert f'memoryd_job_runs_total{{job_name="{job}",state="failed"}} ' in exposed[0], "from the start"


def test_the_dashboard_shows_the_daemon_that_is_chosen_alone():
    for title, expression in expressions():
        if title.startswith("Memoryd"):
            continue
        for figure in used_in(expression):
            assert f"{figure}{{" in expression, title
        assert expression.count("{") == expression.count('job=~"$job",instance=~"$instance"}'), title


def test_the_dashboard_has_four_rows_whose_panels_do_not_overlap():
    board = json.loads((DEPLOY / "grafana" / "memoryd.json").read_text())
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert ["Serving", "Storing", "Knowing", "Keeping"] == rows
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_an_address_that_others_reach_or_that_is_none_is_refused():
    assert ("/run/m.sock", ("127.0.0.1", 9464), ("::1", 1)) == (
        address_of("/run/m.sock"), address_of("127.0.0.1:9464"), address_of("[::1]:1")
    )  # fmt: skip
    assert ("192.0.2.1", 9464) == address_of("192.0.2.1:9464", allow_remote=True)
    with pytest.raises(StartupError, match="other hosts reach"):
        address_of("192.0.2.1:9464")
    for listen in ("m.sock", "localhost:9464", "127.0.0.1", ":9464", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-5"):
        with pytest.raises(StartupError, match="the path of a Unix socket"):
            address_of(listen)
    with pytest.raises(StartupError, match="cannot listen"):
        Endpoint("/proc/nowhere/m.sock", lambda: b"", print)


def test_nothing_but_a_dead_socket_is_replaced_and_a_slow_scraper_holds_no_one(folder):
    precious, path = folder / "precious", folder / "m.sock"
    precious.write_text("database")
    with pytest.raises(StartupError, match="is there and no socket"):
        Endpoint(str(precious), lambda: b"", print)
    assert "database" == precious.read_text()
    endpoint = Endpoint(str(path), lambda: b"figures\n", print)
    with pytest.raises(StartupError, match="something listens already"):
        Endpoint(str(path), lambda: b"", print)
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(path))
        slow.sendall(b"GET /met")
        assert "figures\n" == scraped(path)
        endpoint.close()  # and does not wait for it
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    Endpoint(str(path), lambda: b"", print).close()


def test_a_page_in_a_browser_a_wrong_path_and_a_fault_get_no_figures():
    faults: list[str] = []
    texts = iter([b"figures\n"])
    endpoint = Endpoint(("127.0.0.1", 0), lambda: next(texts), faults.append)

    def get(path: str, host: str) -> tuple[int, bytes]:
        request = urllib.request.Request(f"http://127.0.0.1:{endpoint.port}{path}", headers={"Host": host})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    try:
        assert 403 == get("/metrics", "evil.example:80")[0]
        assert 404 == get("/other", "127.0.0.1")[0]
        assert (200, b"figures\n") == get("/metrics", "localhost:1")
        assert 503 == get("/metrics", f"127.0.0.1:{endpoint.port}")[0]
        assert ["StopIteration"] == faults
    finally:
        endpoint.close()


def test_without_the_extra_or_switched_off_there_are_none_and_it_is_said(folder, monkeypatch):
    assert not is_measured(Config())
    on = Config(metrics=MetricsConfig(enabled=True))
    assert is_measured(on)
    for module in ("memoryd.metrics.figures", "memoryd.metrics.endpoint", "prometheus_client"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match="need the extra"):
        Metrics(on, None)
    with running(folder) as daemon, pytest.raises(Unavailable, match="metrics.enabled"):
        daemon.client().metrics()
