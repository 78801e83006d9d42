"""Each alert of deploy/prometheus/alerts.yml, held against figures that must fire it, and against healthy ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FIRED_BY", "faults_of_alerts"]

OF = 'job="memoryd",instance="host"'
DAY = 1440  # minutes, as all times here; `_` in a series: nothing was scraped then
HEALTHY = {
    f"up{{{OF}}}": f"1x{10 * DAY}",
    f"memoryd_build_info{{{OF}}}": f"1x{10 * DAY}",
    f"memoryd_store_damaged{{{OF}}}": f"0x{10 * DAY}",
    f'memoryd_refused_total{{reason="INTERNAL",{OF}}}': f"0x{10 * DAY}",
    f'memoryd_refused_total{{reason="STORE_DAMAGED",{OF}}}': f"0x{10 * DAY}",
    f'memoryd_refused_total{{reason="UNAVAILABLE",{OF}}}': f"0x{10 * DAY}",
    f"memoryd_disk_free_bytes{{{OF}}}": f"100e9x{10 * DAY}",
    f"memoryd_disk_min_free_bytes{{{OF}}}": f"1e9x{10 * DAY}",
    f"memoryd_backup_last_success_timestamp_seconds{{{OF}}}": f"0+60x{10 * DAY}",
    f"memoryd_backup_last_verified_timestamp_seconds{{{OF}}}": f"0+60x{10 * DAY}",
    f"memoryd_backup_fault{{{OF}}}": f"0x{10 * DAY}",
    f"memoryd_ship_lag_seconds{{{OF}}}": f"5x{10 * DAY}",
    f"memoryd_audit_fault{{{OF}}}": f"0x{10 * DAY}",
    f"memoryd_clock_in_doubt{{{OF}}}": f"0x{10 * DAY}",
    f'memoryd_job_runs_total{{job_name="gc",state="failed",{OF}}}': f"0x{10 * DAY}",
    f'memoryd_job_last_success_timestamp_seconds{{job_name="gc",{OF}}}': f"0+60x{10 * DAY}",
    f"memoryd_loop_lag_max_seconds{{{OF}}}": f"0.01x{10 * DAY}",
    f"memoryd_learning_parked_threads{{{OF}}}": f"0x{10 * DAY}",
    **{
        f'rpc_server_call_duration_seconds_bucket{{rpc_method="SearchMemories",le="{le}",{OF}}}': f"0+60x{10 * DAY}"
        for le in ("0.05", "0.25", "0.5", "+Inf")
    },
}
FIRED_BY: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "MemorydDown": (3, {"up": "0x9"}),
    "MemorydDamaged": (1, {"memoryd_store_damaged": "1x9"}),
    "MemorydInternalErrors": (12, {'memoryd_refused_total{reason="INTERNAL"': "0x5 1x9"}),
    "MemorydUnavailable": (25, {'memoryd_refused_total{reason="UNAVAILABLE"': "0+3x30"}),
    "MemorydDiskSoonFull": (120, {"memoryd_disk_free_bytes": "50e9-100e6x400"}),
    "MemorydBackupOld": (100, {"memoryd_backup_last_success_timestamp_seconds": "0x200"}),
    "MemorydBackupFault": (20, {"memoryd_backup_fault": "1x30"}),
    "MemorydBackupUnproved": (8 * DAY + 20, {"memoryd_backup_last_verified_timestamp_seconds": f"0x{9 * DAY}"}),
    "MemorydBackupNeverProved": (2 * DAY + 20, {"memoryd_backup_last_verified_timestamp_seconds": f"_x{9 * DAY}"}),
    "MemorydShippingLag": (10, {"memoryd_ship_lag_seconds": "90x20"}),
    "MemorydAuditFault": (5, {"memoryd_audit_fault": "1x9"}),
    "MemorydClockInDoubt": (15, {"memoryd_clock_in_doubt": "1x30"}),
    "MemorydJobFailing": (300, {'memoryd_job_runs_total{job_name="gc"': "0x9 0+1x300"}),
    "MemorydPurgeOverdue": (65, {'memoryd_job_last_success_timestamp_seconds{job_name="gc"': "_x100"}),
    "MemorydLoopBlocked": (15, {"memoryd_loop_lag_max_seconds": "0.8x30"}),
    "MemorydLearningParked": (65, {"memoryd_learning_parked_threads": "2x100"}),
    "MemorydSlow": (
        30,
        {
            'rpc_server_call_duration_seconds_bucket{rpc_method="SearchMemories",le="0.05"': "0+50x60",
            'rpc_server_call_duration_seconds_bucket{rpc_method="SearchMemories",le="0.25"': "0+55x60",
        },
    ),
}
"""After so many minutes, where these figures stand in place of the healthy ones of the same begin."""


def faults_of_alerts(promtool: str, rules: Path, folder: Path) -> str:
    """Return what Prometheus's test of rules finds wrong; empty: each alert fires when it should, and only then."""
    alerts = {rule["alert"]: rule for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]}
    if missing := alerts.keys() ^ FIRED_BY.keys():
        return f"no figures fire {', '.join(sorted(missing))}"
    faults, each = "", list(_tests(alerts))
    for takes_days, every in ((False, "1m"), (True, "10m")):  # each minute of nine days would take a minute
        tests = [test for minutes, test in each if (minutes >= DAY) is takes_days]
        path = folder / f"alerts-test-{every}.json"
        path.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": every, "tests": tests}))
        done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
        faults += "" if done.returncode == 0 else done.stdout + done.stderr
    return faults


def _tests(alerts: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield tests with how many minutes they look at."""
    for minutes in (30, 9 * DAY):
        yield minutes, _test(HEALTHY, [{"eval_time": f"{minutes}m", "alertname": name} for name in alerts])
    for name, (minutes, ill) in FIRED_BY.items():
        series = {
            figure: next((ill[one] for one in ill if figure.startswith(one)), well) for figure, well in HEALTHY.items()
        }
        labels = {"severity": alerts[name]["labels"]["severity"], "job": "memoryd", "instance": "host"}
        if name == "MemorydJobFailing":
            labels["job_name"] = "gc"
        summary = alerts[name]["annotations"]["summary"].replace("{{ $labels.job_name }}", "gc")
        fired = [{"exp_labels": labels, "exp_annotations": {"summary": summary}}]
        yield minutes, _test(series, [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": fired}])


def _test(series: Mapping[str, str], asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": figure, "values": values} for figure, values in series.items()],
        "alert_rule_test": asked,
    }
