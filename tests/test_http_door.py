"""The HTTP door: what it takes, what it answers, who it listens to, and what it says of itself."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from unicodedata import normalize

import httpx
import pytest
import trustme
from memory_client import MemoryClient
from openapi_spec_validator import validate

from tests.access_helpers import METHODS, NOBODY
from tests.forking import begin_command, run_command
from tests.http_helpers import BINARY, JSON, Caller, door, outcome_of
from tests.support import PATIENCE_S, until
from tests.test_http_access import SERVED
from tests.web_helpers import hostile


@pytest.fixture(params=[JSON, BINARY])
def caller(request, world, http):
    return Caller(http, world.token(user_id=f"u{time.time_ns()}", chat_ids=()), media=request.param)


ADD, SEARCH, LIST = "MemoryService/AddMemory", "MemoryService/SearchMemories", "MemoryService/ListMemories"


def test_what_is_added_is_found(caller):
    added = caller.told(ADD, {"content": "I'm allergic to peanuts", "metadataJson": '{"score": 3}'})["result"]
    assert "OUTCOME_INSERTED" == added["outcome"]
    found = caller.told(SEARCH, {"query": "peanuts", "minScore": 0})
    assert ["I'm allergic to peanuts"] == [hit["memory"]["content"] for hit in found["hits"]]
    [kept] = caller.told(LIST, {"filter": {"where": "score >= 3"}})["memories"]
    assert (added["memory"]["id"], '{"score":3}') == (kept["id"], kept["metadataJson"].replace(" ", ""))


def test_names_of_fields_are_taken_as_json_and_as_the_contract_has_them(world, http):
    caller = Caller(http, world.token(user_id="names", chat_ids=()))
    for body in ('{"content": "a", "requestId": "r-1"}', '{"content": "a", "request_id": "r-1"}'):
        answer = http.post(f"/memoryd.v1.{ADD}", content=body, headers=caller.headers)
        assert 200 == answer.status_code, answer.text
    assert 1 == len(caller.told(LIST, {})["memories"])


def test_a_mask_names_fields_in_either_spelling_and_a_body_may_begin_with_a_mark(world, http):
    caller = Caller(http, world.token(user_id="masks", chat_ids=()))
    added = caller.told(ADD, {"content": "I keep bees"})["result"]["memory"]["id"]
    for named in ("expireTime", "expire_time", "tags,expire_time"):
        body = f'\ufeff{{"id": "{added}", "expireTime": "2099-01-01T00:00:00Z", "updateMask": "{named}"}}'.encode()
        answer = http.post("/memoryd.v1.MemoryService/UpdateMemory", content=body, headers=caller.headers)
        assert 200 == answer.status_code, answer.text


def test_who_asks_too_often_is_told_when_to_come_again(world, http):
    caller = Caller(http, world.token(chat_ids=(), quota={"calls_per_second": 2}))
    waits = {answer.headers.get("retry-after") for answer in (caller.send(LIST, {}) for _ in range(9))}
    assert {None, "1"} == waits
    large = Caller(http, world.token(chat_ids=())).send(ADD, {"content": "x" * 9000})
    assert (429, False) == (large.status_code, "retry-after" in large.headers)


def test_odd_requests_are_answered_and_leave_no_word_behind(world, tmp_path):
    path = tmp_path / "odd.sock"
    with door(world.shared, listen=f"unix:{path}") as (_, process):
        for said in (
            b"GET http://[x HTTP/1.1\r\nHost: a\r\n\r\n", b"POST / HTTP/1.0\r\nOrigin: http://a\r\n\r\n",
            b"GET /openapi.json HTTP/1.0\r\n\r\n", b"GET https:// HTTP/1.1\r\nHost: a\r\n\r\n",
        ):  # fmt: skip
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(PATIENCE_S)
                one.connect(str(path))
                one.sendall(said)
                assert one.recv(12)[9:] in {b"200", b"403", b"404"}, said
        process.terminate()
        assert "" == process.stderr.read()


def test_a_path_may_be_whole_as_for_a_proxy(world, address):
    host = address.removeprefix("http://").strip("/")
    with socket.create_connection(host.split(":")) as one:
        one.sendall(f"GET {address}openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert one.recv(15).startswith(b"HTTP/1.1 200 OK")


def test_an_error_has_the_code_the_reason_and_the_field(world, http):
    caller = Caller(http, world.token(chat_ids=()))
    answer = caller.send(ADD, {"content": ""})
    told = answer.json()
    assert (400, "invalid_argument") == (answer.status_code, told["code"])
    assert "content is empty" in told["message"]
    assert {"google.rpc.ErrorInfo", "google.rpc.BadRequest"} == {one["type"] for one in told["details"]}
    [violation] = [one["debug"]["fieldViolations"] for one in told["details"] if "fieldViolations" in one["debug"]]
    assert "content" == violation[0]["field"]
    missing = caller.send("MemoryService/GetMemory", {"id": "a" * 26})
    assert (404, ("NOT_FOUND", "MEMORY_NOT_FOUND")) == (missing.status_code, outcome_of(missing))
    without = Caller(http).send(LIST, {})
    assert (401, NOBODY, "Bearer") == (without.status_code, outcome_of(without), without.headers["www-authenticate"])


def test_bytes_that_are_no_message_are_refused(world, http):
    caller = Caller(http, world.token(chat_ids=()), media=BINARY)
    answer = http.post(f"/memoryd.v1.{ADD}", content=b"\x0a\xff\xff\xff\xff\x0f", headers=caller.headers)
    assert ("INVALID_ARGUMENT", "INVALID_FIELD") == outcome_of(answer)


def test_what_is_no_call_is_told_what_is_one(http):
    for path in ("/", "/memoryd.v1.MemoryService/Nothing", "/memoryd.v1.AdminService/GetServerInfo", "/favicon.ico"):
        answer = http.post(path, content="{}", headers={"Content-Type": JSON})
        assert (404, "unimplemented") == (answer.status_code, answer.json()["code"])
    got = http.get(f"/memoryd.v1.{LIST}")
    assert (405, "POST") == (got.status_code, got.headers["allow"])
    for media in ("text/plain", "application/grpc", "application/connect+json", ""):
        answer = http.post(f"/memoryd.v1.{LIST}", content="{}", headers={"Content-Type": media})
        assert (415, "application/json, application/proto") == (answer.status_code, answer.headers["accept-post"])
    packed = http.post(f"/memoryd.v1.{LIST}", content="{}", headers={"Content-Type": JSON, "Content-Encoding": "gzip"})
    assert (501, "identity") == (packed.status_code, packed.headers["accept-encoding"])
    other = http.post(
        f"/memoryd.v1.{LIST}", content="{}", headers={"Content-Type": JSON, "Connect-Protocol-Version": "2"}
    )
    assert 400 == other.status_code


def test_limits_hold(world, http):
    caller = Caller(http, world.token(chat_ids=()))
    answer = http.post(f"/memoryd.v1.{ADD}", content=b"x" * (4 << 20) + b"x", headers=caller.headers)
    assert (413, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")) == (answer.status_code, outcome_of(answer))
    long = caller.send(ADD, {"content": "x" * 8193})
    assert (429, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")) == (long.status_code, outcome_of(long))
    for given, status in (
        ("60000", 200),
        ("9999999999", 200),
        ("0", 504),
        ("12345678901", 400),
        ("1.5", 400),
        ("-1", 400),
    ):
        assert status == caller.send(LIST, {}, **{"Connect-Timeout-Ms": given}).status_code, given


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421), ({"Host": "127.0.0.1.evil.example:80"}, 421), ({"Host": "localhost:1"}, 200),
        ({"Host": "LOCALHOST"}, 200), ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, 403),
        ({"Host": "localhost:1", "Origin": "https://localhost:1"}, 403),
    ],
)  # fmt: skip
def test_no_page_of_another_origin_calls_it(world, http, headers, status):
    caller = Caller(http, world.token(chat_ids=()))
    answer = caller.send(LIST, {}, **headers)
    assert status == answer.status_code
    assert not {name for name in answer.headers if name.startswith("access-control")}
    assert "set-cookie" not in answer.headers


def test_a_token_that_no_header_may_hold_is_none(http):
    for token in ("é", "\x07", "a\tb"):
        answer = http.post(
            f"/memoryd.v1.{LIST}", content="{}",
            headers={"Content-Type": JSON, "Authorization": f"Bearer {token}".encode("latin-1")},
        )  # fmt: skip
        assert answer.status_code in {400, 401}, token


def test_hostile_texts_come_back_as_they_went(world, http):
    owner = world.token(user_id="hostile", chat_ids=(), quota={"calls_per_second": 0})  # however fast this is
    said = Caller(http, owner)
    kept = 0
    for text in hostile(300):
        answer = said.send("NoteService/PutNote", {"path": f"n{kept}", "text": text})
        if answer.status_code != 200:
            assert "invalid_argument" == answer.json()["code"]
            continue
        for media in (JSON, BINARY):
            told = Caller(http, owner, media=media).told("NoteService/GetNote", {"path": f"n{kept}"})
            assert normalize("NFC", text) == told["note"]["text"]
        raw = said.send("NoteService/GetNote", {"path": f"n{kept}"})
        assert (JSON, "nosniff") == (raw.headers["content-type"], raw.headers["x-content-type-options"])
        kept += 1
    assert kept > 250


def test_it_says_what_it_serves(http, address):
    told = http.get("/openapi.json").json()
    validate(told)
    assert {f"/memoryd.v1.{name}" for name in SERVED} == set(told["paths"])
    for name in SERVED:
        entry = told["paths"][f"/memoryd.v1.{name}"]["post"]
        _, method = METHODS[name]
        [schema] = [media["schema"] for media in entry["requestBody"]["content"].values()]
        named = told["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert {field.json_name for field in method.input_type.fields} == set(named["properties"])
        assert entry["summary"]
        assert entry["description"].startswith(entry["summary"][:20])
    assert told == json.loads(subprocess.check_output([sys.executable, "-m", "memoryd", "http", "--openapi"]))


def test_answers_are_what_the_document_says(world, http):
    from openapi_schema_validator import OAS31Validator

    told = http.get("/openapi.json").json()
    caller = Caller(http, world.token(user_id="schemas", chat_ids=()))
    caller.told(ADD, {"content": "my wife Sarah likes tea", "tags": ["a"], "metadata": {"k": "v"}})
    caller.told("ConversationService/AppendMessages", {"threadId": "t", "messages": [{"content": "hello"}]})
    caller.told("NoteService/PutNote", {"path": "a/b", "text": "x", "expireAfterS": "60"})
    for name, fields in (
        (LIST, {}), (SEARCH, {"query": "tea", "explain": True}), ("EntityService/ListPeople", {}),
        ("ConversationService/ListMessages", {"threadId": "t"}), ("NoteService/ListNotes", {}),
        ("ContextService/BuildContext", {"prompt": "tea"}), ("IdentityService/WhoAmI", {}),
        ("MemoryService/GetMemoryStats", {}),
    ):  # fmt: skip
        content = told["paths"][f"/memoryd.v1.{name}"]["post"]["responses"]["200"]["content"]
        schema = {**content["application/json"]["schema"], "components": told["components"]}
        OAS31Validator(schema).validate(caller.told(name, fields))
    failed = caller.send(ADD, {"content": ""}).json()
    OAS31Validator({**told["components"]["schemas"]["Error"], "components": told["components"]}).validate(failed)


def test_the_daemon_goes_and_comes_back(folder):
    from tests.doors import a_world

    with a_world(folder) as world, door(world.shared) as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            caller = Caller(http, world.token(chat_ids=()))
            assert 200 == caller.send(LIST, {}).status_code
            world.daemon.kill()
            away = caller.send(LIST, {})
            assert (503, ("UNAVAILABLE", "UNAVAILABLE")) == (away.status_code, outcome_of(away))
            assert str(folder) not in away.text
            world.daemon.start()
            assert until(lambda: caller.send(LIST, {}).status_code == 200)


def test_it_listens_on_a_unix_socket(world, tmp_path):
    path = tmp_path / "http.sock"
    with door(world.shared, listen=f"unix:{path}") as (said, _):
        assert str(path) in said
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://any.name") as http:
            assert 200 == Caller(http, world.token(chat_ids=())).send(LIST, {}).status_code
    assert not path.exists()


def test_with_tls_it_is_reached_by_its_name(world, tmp_path):
    authority = trustme.CA()
    made = authority.issue_cert("memory.example.org")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = ("--tls-certificate-file", str(tmp_path / "cert.pem"), "--tls-key-file", str(tmp_path / "key.pem"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with door(world.shared, "--host", "memory.example.org", *files) as (said, _):
        assert said.startswith("https://127.0.0.1:")
        port = said.rpartition(":")[2].strip("/")
        with httpx.Client(verify=context, base_url=f"https://127.0.0.1:{port}", timeout=PATIENCE_S) as http:
            caller = Caller(http, world.token(chat_ids=()))
            more = {"extensions": {"sni_hostname": "memory.example.org"}}
            answer = http.post(
                f"/memoryd.v1.{LIST}", content="{}", headers={**caller.headers, "Host": "memory.example.org"}, **more
            )
            assert 200 == answer.status_code
            named = {**caller.headers, "Host": "memory.example.org", "Origin": "https://memory.example.org"}
            assert 200 == http.post(f"/memoryd.v1.{LIST}", content="{}", headers=named, **more).status_code
            assert 421 == http.post(f"/memoryd.v1.{LIST}", content="{}", headers=caller.headers, **more).status_code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "0.0.0.0:0"), "without TLS"), (("--listen", "nowhere"), "neither"),
        (("--listen", "nowhere:1"), "no address"),
        (("--tls-key-file", "/nothing"), "TLS needs"),
        (("--tls-key-file", "/nothing", "--tls-certificate-file", "/nothing"), "/nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused_in_one_line(world, words, said):
    command = [sys.executable, "-m", "memoryd", "http", "--endpoint", world.shared, *words]
    done = run_command(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode in {1, 2}, "", 1) == (True, done.stdout, len(done.stderr.splitlines()))
    assert said in done.stderr


def test_behind_a_proxy_it_is_reached_by_the_name_of_the_proxy(world):
    with door(world.shared, "--host", "memory.example.org") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            caller = Caller(http, world.token(chat_ids=()))
            named = {"Host": "memory.example.org"}
            assert 200 == caller.send(LIST, {}, **named).status_code
            assert 200 == caller.send(LIST, {}, **named, Origin="https://memory.example.org").status_code
            assert 403 == caller.send(LIST, {}, **named, Origin="https://evil.example.org").status_code
            assert 421 == caller.send(LIST, {}, Host="evil.example.org").status_code


def test_files_that_are_no_certificate_are_told_before_it_listens(world, tmp_path):
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nothing")
    words = ("--tls-certificate-file", str(tmp_path / "cert.pem"), "--tls-key-file", str(tmp_path / "key.pem"))
    command = [sys.executable, "-m", "memoryd", "http", "--endpoint", world.shared, *words]
    done = run_command(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (2, 1, True) == (done.returncode, len(done.stderr.splitlines()), "is no certificate in PEM" in done.stderr)


def test_a_socket_that_asks_for_no_token_is_refused(world):
    sandbox = f"unix://{world.sandbox().directory}/memory.sock"
    for endpoint in (world.daemon.endpoint, sandbox):
        command = [sys.executable, "-m", "memoryd", "http", "--endpoint", endpoint, "--listen", "127.0.0.1:0"]
        done = run_command(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (2, True) == (done.returncode, "without a token" in done.stderr)


def test_it_finds_the_shared_socket_of_the_configuration(world, tmp_path):
    place = tmp_path / "memoryd.toml"
    place.write_text(f'[shared]\nsocket = "{world.shared.removeprefix("unix://")}"\n')
    command = [sys.executable, "-m", "memoryd", "http", "--config", str(place), "--listen", "127.0.0.1:0"]
    with begin_command(command, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().strip().removeprefix("memoryd: ")
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            assert 200 == Caller(http, world.token(chat_ids=())).send(LIST, {}).status_code
        process.terminate()
    place.write_text("")
    done = run_command(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (2, True) == (done.returncode, "there is no shared socket" in done.stderr)


def test_what_comes_over_http_is_what_comes_over_grpc(world, http):
    token = world.token(user_id="both", chat_ids=())
    Caller(http, token).told(ADD, {"content": "I keep bees"})
    with world.client(world.shared, token) as client, MemoryClient(world.daemon.endpoint, user_id="both") as host:
        assert ["I keep bees"] == [memory.content for memory in client.pages()]
        assert ["sandbox"] == [memory.trust.value for memory in host.pages()]
