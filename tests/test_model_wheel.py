"""The model's file in a package of our own: built, installed, and taken before the one of others."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from memoryd.embedding import packaged

ROOT = Path(__file__).parent.parent
SAYS = "from memoryd.embedding import packaged; packaged.packaged_model(); print(packaged._package())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    into = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "deploy/model/build.sh", sys.executable, into], check=True, capture_output=True)
    return next(into.glob("memoryd_model_minilm-*.whl"))


def test_it_is_taken_where_it_is_installed(wheel, folder):
    call = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(call, check=True, capture_output=True)
    env = {"PYTHONPATH": f"{folder}:{ROOT}"}
    said = subprocess.run([sys.executable, "-c", SAYS], env=env, capture_output=True, text=True, check=True).stdout
    assert f"{folder}/memoryd_model_minilm" == said.strip()
    (folder / "memoryd_model_minilm" / "model.onnx").write_bytes(b"another")
    refused = subprocess.run([sys.executable, "-c", SAYS], env=env, capture_output=True, text=True, check=False)
    assert "model.onnx is not the file it should be" in refused.stderr


def test_it_holds_the_checked_file_its_licence_and_no_code(wheel):
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        assert packaged.packaged_model() == held.read("memoryd_model_minilm/model.onnx")
    assert ["memoryd_model_minilm/__init__.py"] == [name for name in names if name.endswith(".py")]
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names}
