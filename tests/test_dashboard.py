"""The picture of the dashboard has each panel, with its lines where it places them; `make dashboard` makes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.dashboard.alerts import FIRED_BY, faults_of_alerts
from tests.dashboard.drawn import Series, drawn, legend_of

DEPLOY = Path(__file__).parent.parent / "deploy"
SVG = "{http://www.w3.org/2000/svg}"


def test_each_panel_is_drawn_in_its_place_with_its_lines():
    board = json.loads((DEPLOY / "grafana" / "memoryd.json").read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    told = {
        panel["id"]: [Series("one", [(0.0, 0.0), (30.0, -1.0), (60.0, 5e6)]), Series("<b>", [(60.0, 0.002)])]
        for panel in panels[1:]
    }
    picture = ET.fromstring(drawn(board, told, 60.0))  # noqa: S314  it is ours
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {panel["title"] for panel in board["panels"]} <= set(texts)
    assert (1, len(panels) - 1) == (texts.count("none"), texts.count("<b>"))
    assert {"4.77 MiB", "57.9 d", "5 M"} <= set(texts)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    lines = list(picture.iter(f"{SVG}polyline"))
    assert 2 * (len(panels) - 1) == len(lines)
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_legend_takes_the_values_of_labels():
    assert "gc ended: failed" == legend_of("{{job_name}} ended: {{state}}", {"job_name": "gc", "state": "failed"})


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_each_alert_fires_when_it_should(tmp_path):
    rules = DEPLOY / "prometheus" / "alerts.yml"
    assert "" == faults_of_alerts(str(shutil.which("promtool")), rules, tmp_path)
    damaged = tmp_path / "alerts.yml"
    damaged.write_text(rules.read_text().replace("memoryd_audit_fault == 1", "memoryd_audit_fault == 2"))
    said = faults_of_alerts(str(shutil.which("promtool")), damaged, tmp_path)
    assert said.count("alertname:") == 1, said
    assert "MemorydAuditFault" in said
    assert len(FIRED_BY) > 15
