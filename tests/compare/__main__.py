"""
Ask two checkouts the same questions and compare the answers: make compare OLD=<folder of the other checkout>.

Both daemons run with the same seed for their ids. Ids are compared as labels, in the order in which they are first
seen; times near now as "now"; scores to five digits. Everything else must be equal, errors too.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format, symbol_database

import memoryd.v1.admin_service_pb2
import memoryd.v1.context_service_pb2
import memoryd.v1.conversation_service_pb2
import memoryd.v1.entity_service_pb2
import memoryd.v1.grant_service_pb2
import memoryd.v1.job_service_pb2
import memoryd.v1.memory_service_pb2  # noqa: F401  each registers its messages
from tests.compare.script import SANDBOXES, Call, Crowd
from tests.support import reason_of

# Ids come from a seed; those of other lengths (daemons, keys, calls) from another one, as not every version draws as
# many. The counts of recalls, written down every 3 s, wait for the stop: when they are written would depend on the
# machine. So would what is read and learnt in the background: it is learnt by job, one thread at a time, and waited
# for; and what is learnt within an hour counts as said at once.
LAUNCH = (
    "import asyncio, random, runpy, secrets, sys, uuid; dice = random.Random(int(sys.argv.pop(1)));"
    " sleep = asyncio.sleep;"
    " asyncio.sleep = lambda delay, result=None: sleep(1e6 if delay in (3.0, 5.0) else delay, result);"
    " other = random.Random(1); secrets.token_bytes = lambda n=32: (dice if n == 16 else other).randbytes(n);"
    " secrets.token_hex = lambda n=32: secrets.token_bytes(n).hex();"
    " uuid.uuid4 = lambda: uuid.UUID(bytes=dice.randbytes(16), version=4);"
    " from datetime import timedelta; import memoryd.model.memory as memory; memory.AT_ONCE = timedelta(hours=1);"
    " memory.AT_ONCE_US = 3_600_000_000;"
    " import memoryd.learning.follow as follow; follow.TOGETHER = dict.fromkeys(follow.TOGETHER, 1);"
    " sys.argv[0] = 'memoryd'; runpy.run_module('memoryd', run_name='__main__', alter_sys=True)"
)
CONFIG = """
[memory]
auto_gc = false
[schedule]
gc = ""
decay = ""
enrichment = ""
compaction = ""
[readers]
change = "none"
[learning]
wait_s = 86400.0
"""
ID = re.compile(r"\b[a-z2-7]{26}\b")
LABEL = re.compile(r"#(?:page-)?\d+")
NAMESAKES = re.compile(r"(?<=may be several: )[^;]+")  # listed by their ids, which are random
START_S = 60
SEES_MESSAGES = frozenset({"SearchMessages", "BuildContext"})
SHOWN = 12  # differences that are printed


class Side:
    """One checkout's daemon, and what its answers are called."""

    def __init__(self, checkout: Path, folder: Path, config: str) -> None:
        self._checkout, self._folder = checkout, folder
        self._labels: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._channels: dict[str, grpc.Channel] = {}
        self._starts = 0
        self._sockets = {"admin": folder / "run" / "admin.sock"}
        (folder / "memoryd.toml").write_text(config, encoding="utf-8")

    def start(self) -> None:
        self._starts += 1
        python = self._checkout / ".venv" / "bin" / "python"
        env = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "PYTHONHASHSEED": "0"}
        arguments = ["serve", "--data-dir", self._folder, "--socket", self._sockets["admin"]]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [python, "-c", LAUNCH, str(self._starts), *arguments, "--config", self._folder / "memoryd.toml"],
                stdout=log, stderr=log, env=env, cwd=self._checkout,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while not self._sockets["admin"].exists() or self._ping() is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"memoryd of {self._checkout} did not start: {(self._folder / 'log').read_text()}")
            time.sleep(0.02)

    def _ping(self) -> Any:
        try:
            return self._send("admin", "AdminService", "GetServerInfo", {})
        except grpc.RpcError:
            return None

    def _info(self) -> Any:
        return self._send("admin", "AdminService", "GetServerInfo", {})

    def _ended(self, begun: Any) -> Any:
        """Return a run of a job once it has ended."""
        asked = {"id": begun["run"]["id"]}
        found = [begun]

        def is_over() -> bool:
            found.append(self._send("admin", "JobService", "GetJobRun", asked))
            return "RUNNING" not in found[-1]["run"]["state"]

        self._wait(is_over)
        return found[-1]

    def _wait(self, is_over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while not is_over():
            if time.monotonic() > deadline:
                raise SystemExit(f"memoryd of {self._checkout} was not done within {START_S} s")
            time.sleep(0.01)

    def stop(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._process.terminate()
        self._process.wait()

    def open_sandboxes(self) -> None:
        for name, spec in SANDBOXES.items():
            given = {"spec": {**spec, "label": name, "permissions": ["full"]}}
            answer = self._send("admin", "GrantService", "OpenSandbox", given)
            self._sockets[name] = Path(answer["status"]["directory"]) / "memory.sock"

    def _send(self, door: str, service: str, method: str, request: dict[str, Any]) -> Any:
        channel = self._channels.get(door)
        if channel is None:
            channel = self._channels[door] = grpc.insecure_channel(f"unix:{self._sockets[door]}")
        database = symbol_database.Default()
        message = json_format.ParseDict(request, database.GetSymbol(f"memoryd.v1.{method}Request")())
        call = channel.unary_unary(
            f"/memoryd.v1.{service}/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=database.GetSymbol(f"memoryd.v1.{method}Response").FromString,
        )
        answer = call(message, timeout=60, wait_for_ready=True)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)

    def ask(self, call: Call) -> Any:
        """Return the answer, or the error, in a form that two sides can be compared by."""
        request = self._with_ids(call.request)
        if call.method in SEES_MESSAGES:
            self._wait(lambda: not self._info().get("unembedded_message_count"))
        try:
            answer = self._send(call.door, call.service, call.method, request)
            return self._told(self._ended(answer) if call.method == "RunJob" else answer)
        except grpc.RpcError as error:
            return self._told({"error": error.code().name, "reason": reason_of(error), "message": error.details()})

    def _with_ids(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_ids(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._with_ids(inner) for inner in value]
        return LABEL.sub(lambda found: self._ids.get(found[0], found[0]), value) if isinstance(value, str) else value

    def _label(self, one: str, prefix: str = "#") -> str:
        label = self._labels.get(one)
        if label is None:
            label = self._labels[one] = f"{prefix}{len(self._labels)}"
            self._ids[label] = one
        return label

    def _told(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._told(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            told = [self._told(inner, key) for inner in value]
            return sorted(told) if key in UNORDERED else told
        if isinstance(value, float):
            return round(value, 5)
        if not isinstance(value, str):
            return value
        if key == "next_page_token":
            return self._label(value, "#page-") if value else ""
        if key == "time" or key.endswith("_time"):
            return _time(value)
        text = ID.sub(lambda found: self._label(found[0]), value)
        text = NAMESAKES.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)
        return text.replace(str(self._folder), "")


UNORDERED = frozenset({"merged_ids", "supersedes", "superseded_ids"})  # lists of ids in no order that anybody promised


def _time(text: str) -> str:
    time_ = datetime.fromisoformat(text)
    days = round((time_ - datetime.now(UTC)) / timedelta(days=1), 1)
    return "now" if days == 0 else f"in {days:.0f} days" if days > 0 else text[:10]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make compare", description=__doc__)
    parser.add_argument("old", type=Path, help="the other checkout, with a .venv of its own")
    parser.add_argument("--calls", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--but-words", action="store_true", help="leave out how errors are worded")
    parser.add_argument("--provider", default="builtin", help="none: where the two have other models (builtin)")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[2]
    crowd = Crowd(options.seed)
    asked: collections.Counter[str] = collections.Counter()
    different = 0
    with tempfile.TemporaryDirectory(prefix="compare-") as scratch:
        sides = []
        for name, checkout in (("old", options.old.resolve()), ("new", here)):
            folder = Path(scratch) / name
            folder.mkdir(mode=0o700)
            sides.append(Side(checkout, folder, f'{CONFIG}\n[embedding]\nprovider = "{options.provider}"\n'))
        for side in sides:
            side.start()
            side.open_sandboxes()
        try:
            for n, call in enumerate(crowd.calls(options.calls)):
                if call.restart_before:
                    for side in sides:
                        side.stop()
                        side.start()
                old, new = (side.ask(call) for side in sides)
                asked[f"{call.method} {'error' if 'error' in old else 'ok'}"] += 1
                crowd.saw(call, old)
                if options.but_words and "error" in old and "error" in new:
                    old.pop("message"), new.pop("message")
                if old != new:
                    different += 1
                    if different <= SHOWN:
                        _show(n, call, old, new)
        finally:
            for side in sides:
                side.stop()
    for name, count in sorted(asked.items()):
        print(f"{count:6} {name}")
    print(f"{options.calls} calls, seed {options.seed}: {different} answers differ")
    return 1 if different else 0


def _show(n: int, call: Call, old: Any, new: Any) -> None:
    print(f"call {n}, {call.door}: {call.method} {json.dumps(call.request, ensure_ascii=False)[:600]}")
    left, right = (json.dumps(side, ensure_ascii=False, indent=1).splitlines() for side in (old, new))
    for one, other in zip(left + [""] * 9, right + [""] * 9, strict=False):
        if one != other:
            print(f"  old {one.strip()}\n  new {other.strip()}")


if __name__ == "__main__":
    sys.exit(main())
