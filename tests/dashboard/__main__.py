"""
Draw the dashboard as it looks over a daemon under load, and say which alerts fire.

Prometheus itself answers each expression of deploy/grafana/memoryd.json and loads deploy/prometheus/alerts.yml.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.dashboard.alerts import faults_of_alerts
from tests.dashboard.drawn import Series, drawn, legend_of
from tests.soak.load import Figures, Worker
from tests.support import Daemon, until

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARD, ALERTS = DEPLOY / "grafana" / "memoryd.json", DEPLOY / "prometheus" / "alerts.yml"
JOBS = ("backup", "gc", "decay", "reflection", "consolidation", "compaction")  # what nights run
WORKERS, PACE_S, SCRAPE_S, POINTS = 4, 0.15, 2, 90
QUIET = {"Calls that failed, by code"}
"""A panel that shows nothing while nothing is wrong."""
MEMORYD = """[metrics]
enabled = true
listen = "127.0.0.1:{port}"
[learning]
wait_s = 5
[backup]
directory = "{backup}"
"""
PROMETHEUS = """global: {{scrape_interval: {scrape}s, evaluation_interval: {scrape}s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: memoryd
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def main() -> int:
    """Run it; exit code 1 where a panel shows nothing that should, or an alert fires, or will."""
    parser = argparse.ArgumentParser(prog="make dashboard", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="of load; rates are over five")
    parser.add_argument(
        "--output", type=Path, default=Path("docs/dashboard.svg"), help="the picture (docs/dashboard.svg)"
    )
    given = parser.parse_args()
    prometheus, promtool = shutil.which("prometheus"), shutil.which("promtool")
    if prometheus is None or promtool is None:
        print("make dashboard takes Prometheus (Debian's package prometheus)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="board") as name:
        if faults := faults_of_alerts(promtool, ALERTS, Path(name)):
            print(faults, file=sys.stderr)
            return 1
        print("alerts: each fires when it should, and none over healthy figures")
        return _run(Path(name), prometheus, given.minutes * 60, given.output)


def _run(folder: Path, prometheus: str, seconds: float, output: Path) -> int:
    board = json.loads(BOARD.read_text())
    with _watched(folder, prometheus) as (daemon, ask):
        began = time.time()
        _load(daemon, seconds)
        ended = time.time()
        told = {
            panel["id"]: [one for target in panel.get("targets", ()) for one in _asked(ask, target, began, ended)]
            for panel in board["panels"]
        }
        alerts = ask("alerts", {})["alerts"]
    output.write_text(drawn(board, told, ended - began), encoding="utf-8")
    empty = [panel["title"] for panel in board["panels"] if panel["type"] != "row" and not told[panel["id"]]]
    wrong = sorted(set(empty) - QUIET)
    print(f"{len(board['panels'])} panels and rows in {output}; nothing to show: {', '.join(empty) or 'none'}")
    print("alerts that fire, or will:", ", ".join(alert["labels"]["alertname"] for alert in alerts) or "none")
    return 1 if wrong or alerts else 0


@contextmanager
def _watched(folder: Path, prometheus: str) -> Iterator[tuple[Daemon, Any]]:
    """A daemon, and Prometheus, which scrapes it; yields what asks that."""
    (folder / "backup").mkdir()
    (folder / "data").mkdir()
    ports = _free_port(), _free_port()
    daemon = Daemon(folder / "data", config=MEMORYD.format(port=ports[0], backup=folder / "backup"))
    daemon.start()
    config = folder / "prometheus.yml"
    config.write_text(PROMETHEUS.format(scrape=SCRAPE_S, rules=ALERTS, port=ports[0]))
    call = [
        prometheus,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{ports[1]}",
    ]

    def ask(what: str, words: Mapping[str, Any]) -> Any:
        url = f"http://127.0.0.1:{ports[1]}/api/v1/{what}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=60) as reply:
            return json.load(reply)["data"]

    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(call, stdout=log, stderr=log)
    try:
        assert until(lambda: _answers(ask)), (folder / "prometheus.log").read_text()
        yield daemon, ask
    finally:
        process.terminate()
        process.wait()
        daemon.stop()


def _answers(ask: Any) -> bool:
    try:
        return bool(ask("query", {"query": "up == 1"})["result"])
    except OSError:
        return False


def _load(daemon: Daemon, seconds: float) -> None:
    """Let some users add, say, search and erase, and run the jobs of a night one after the other."""
    ended, figures = threading.Event(), Figures()
    workers = [
        Worker(n, daemon.client, figures, ended=ended, is_down=threading.Event(), seed=n, pace_s=PACE_S)
        for n in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    with daemon.client() as client:
        for job in JOBS:
            time.sleep(seconds / len(JOBS) / 2)
            client.run_job(job)
            time.sleep(seconds / len(JOBS) / 2)
    ended.set()
    for worker in workers:
        worker.join()
    if faults := [worker.fault for worker in workers if worker.fault] + figures.unexpected:
        raise AssertionError(faults[:3])


def _asked(ask: Any, target: Mapping[str, str], began: float, ended: float) -> list[Series]:
    """Return the series that an expression of a panel has."""
    step = max(SCRAPE_S, (ended - began) / POINTS)
    expression = target["expr"].replace("$job", "memoryd").replace("$instance", ".*")
    words = {"query": expression, "start": began, "end": ended, "step": step}
    return [
        Series(
            legend_of(target["legendFormat"], found["metric"]),
            [(float(at) - began, float(value)) for at, value in found["values"] if value not in {"NaN", "+Inf"}],
        )
        for found in ask("query_range", words)["result"]
    ]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
