"""What is released is built from what is committed alone, the same each time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def built(source: Path, target: Path) -> dict[str, str]:
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1795000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=source, env=env, check=True, capture_output=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(target.iterdir())}


def unpacked(archive: bytes, folder: Path) -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def test_two_builds_are_the_same_and_the_sdist_builds_the_wheel(tmp_path):
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    once = built(unpacked(archive, tmp_path / "one"), tmp_path / "dist1")
    again = built(unpacked(archive, tmp_path / "other" / "place"), tmp_path / "dist2")
    assert once == again
    sdist, wheel = sorted((tmp_path / "dist1").iterdir(), key=lambda path: path.suffix == ".whl")
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path / "from-sdist", filter="data")
    source = next((tmp_path / "from-sdist").iterdir())
    assert once[wheel.name] == built(source, tmp_path / "dist3")[wheel.name]
    names = zipfile.ZipFile(wheel).namelist()
    assert {"memoryd/requirements.lock", "memoryd/v1/memory_service.proto"} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "."))]
