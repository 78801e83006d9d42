"""The HTTP door: what it takes, what it answers, who it listens to, and what it says of itself."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from unicodedata import normalize

import grpc
import httpx
import pytest
import trustme
from memory_client import MemoryClient
from openapi_spec_validator import validate

from memoryd.http.door import MOST_LARGE_OF_ONE
from tests.access_helpers import METHODS, NOBODY
from tests.doors import NO_MODEL
from tests.http_helpers import BINARY, JSON, Caller, door, outcome_of
from tests.support import PATIENCE_S, running, until
from tests.test_http_access import SERVED
from tests.web_helpers import hostile


@pytest.fixture(scope="module")
def address(world):
    with door(world.shared) as (found, _):
        yield found


@pytest.fixture
def http(address):
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as opened:
        yield opened


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


@pytest.mark.parametrize(
    ("body", "said", "field"),
    [
        ("{", "is no JSON", ""), ("[]", "JSON object", ""), ('"x"', "JSON object", ""), ("3", "JSON object", ""),
        ("nul", "JSON", ""), ("[" * 200_000, "JSON object", ""), ('{"content": ' * 50_000, "nested", ""),
        (b"\xff\xfe", "utf-8", ""), ('{"a":' + "9" * 5000 + "}", "", ""),
        ('{"content": 3}', "content must be a string", "content"),
        ('{"contents": "x"}', "no field named 'contents'; did you mean 'content'?", "contents"),
        ('{"content": "a", "content": "b"}', "content is there twice", "content"),
        ('{"eventTime": "yesterday"}', "must be a time such as 2026-05-03T12:00:00Z", "eventTime"),
        ('{"eventTime": "2026-05-03"}', "must be a time such as", "eventTime"),
        ('{"eventTime": 5}', "must be a time such as", "eventTime"),
        ('{"kind": "FACT"}', "kind must be one of MEMORY_KIND_FACT, ", "kind"),
        ('{"tags": "food"}', "tags must be a list, and each item of it a string", "tags"),
        ('{"tags": ["a", 3]}', "tags must be a list, and each item of it a string", "tags"),
        ('{"metadata": ["x"]}', "metadata must be an object, and each value of it a string", "metadata"),
        ('{"confidence": "NaN2"}', "confidence must be a number", "confidence"),
        ('{"shared": "true"}', "shared must be true or false", "shared"),
        ('{"source": {"channnel": "x"}}', "did you mean 'channel'?", "source.channnel"),
        ('{"source": {"messageIds": [1]}}', "source.messageIds must be a list", "source.messageIds"),
        ('{"content": "\\ud800"}', "half of a surrogate pair", "content"),
        ('{"tags": "\\ud800"}', "", "tags"), ('{"metadata": "\\ud800"}', "", "metadata"),
        ('{"confidence": "\\ud800"}', "", "confidence"), ('{"kind": "\\ud800"}', "surrogate", "kind"),
        ('{"tags": ["\\uDFFF"]}', "surrogate", "tags"), ('{"kind": [["\\ud800"]]}', "", "kind"),
        ('{"\\ud800": 1}', "surrogate", ""), ('{"metadata": {"\\ud800": "x"}}', "surrogate", ""),
    ],
)  # fmt: skip
def test_a_body_that_is_none_is_refused_in_one_short_line(world, http, body, said, field):
    caller = Caller(http, world.token(chat_ids=()))
    answer = http.post(f"/memoryd.v1.{ADD}", content=body, headers=caller.headers)
    told = answer.json()
    assert ((400, "invalid_argument"), True) == ((answer.status_code, told["code"]), said in told["message"]), told
    assert "\n" not in told["message"]
    assert len(told["message"]) <= 500
    assert "Available Fields" not in told["message"]
    named = [
        one["debug"]["fieldViolations"][0]["field"] for one in told["details"] if "fieldViolations" in one["debug"]
    ]
    assert ([field] if field else []) == named


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"requests": [' + ",".join(["{}"] * 1_300_000) + "]}", "more than 32768 fields"),
        ('{"tags": [' + ",".join(['""'] * 1_300_000) + "]}", "tags has more than 1024 items"),
        ('{"metadata": {' + ",".join(f'"{n}":""' for n in range(40_000)) + "}}", "more than 32768 fields"),
    ],
    ids=["objects", "items", "names"],
)
def test_json_that_would_swell_is_counted_before_it_does(world, http, body, said):
    name = "MemoryService/BatchAddMemories" if "requests" in body else ADD
    answer = http.post(f"/memoryd.v1.{name}", content=body, headers=Caller(http, world.token(chat_ids=())).headers)
    assert (429, ("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")) == (answer.status_code, outcome_of(answer))
    assert said in answer.json()["message"]


def test_no_large_body_is_taken_from_someone_whose_token_does_not_count(http):
    """What comes after the first bytes is not waited for: the answer is there before the body is."""
    taken = []

    def body():
        for _ in range(64):
            taken.append(1)
            yield b" " * 65_536

    headers = {"Content-Type": JSON, "Authorization": "Bearer rubbish", "Expect": ""}
    answer = http.post(f"/memoryd.v1.{ADD}", content=body(), headers=headers)
    assert (401, NOBODY) == (answer.status_code, outcome_of(answer))
    assert "unauthenticated" == answer.json()["code"]


def test_one_token_takes_few_of_the_places_for_large_bodies(world, address):
    """Others are served while one caller sends as many large bodies as it can, and slowly."""
    host, port = address.removeprefix("http://").strip("/").split(":")
    token = world.token(chat_ids=(), quota={"calls_per_second": 0})
    head = (
        f"POST /memoryd.v1.{ADD} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {JSON}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: 4000000\r\n\r\n"
    ).encode()
    slow = [socket.create_connection((host, int(port))) for _ in range(MOST_LARGE_OF_ONE)]
    try:
        for one in slow:
            one.sendall(head + b" " * 70_000)
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            large = b" " * 70_000 + b'{"content": "a"}'

            def sent(by: str) -> int:
                return http.post(f"/memoryd.v1.{ADD}", content=large, headers=Caller(http, by).headers).status_code

            assert until(lambda: sent(token) == 503)
            assert 200 == sent(world.token(user_id="other", chat_ids=()))
            assert 200 == Caller(http, token).send(LIST, {}).status_code
            for one in slow:
                one.close()
            assert until(lambda: sent(token) == 200)
    finally:
        for one in slow:
            one.close()


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


def _known(request, context):
    return b""


def _unknown(request, context):
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "")


class FakeDaemon:
    """A daemon that asks for a token, and then does what a test says."""

    def __init__(self, path: Path, answer) -> None:
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.server.add_insecure_port(f"unix:{path}")
        self.answer = answer

    def service(self, details):
        if details.method.endswith("/WhoAmI"):
            is_known = any(name == "authorization" for name, _ in details.invocation_metadata)
            return grpc.unary_unary_rpc_method_handler(_known if is_known else _unknown)
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(0).wait()


def test_a_call_ends_when_its_caller_leaves(folder):
    begun, ended = Event(), Event()

    def answer(_, context):
        context.add_callback(ended.set)
        begun.set()
        ended.wait(PATIENCE_S)
        return b""

    with FakeDaemon(folder / "fake.sock", answer), door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=httpx.Timeout(PATIENCE_S, read=0.5)) as http:
            with pytest.raises(httpx.ReadTimeout):
                Caller(http, "x").send(LIST, {})
            assert begun.is_set()
            assert ended.wait(PATIENCE_S / 2)


def test_a_write_whose_connection_broke_is_in_doubt(folder):
    """The daemon may have carried it out, so no reason says that nothing was written."""
    ended = Event()

    def answer(_, context):
        Thread(target=fake.server.stop, args=(0,)).start()
        ended.wait(PATIENCE_S)
        return b""

    with FakeDaemon(folder / "fake.sock", answer) as fake, door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            answer = Caller(http, "x").send("EntityService/ForgetPerson", {"name": "Sarah"})
            ended.set()
            away = Caller(http, "x").send(LIST, {})
    assert (503, ("UNAVAILABLE", "")) == (answer.status_code, outcome_of(answer))
    assert "a write may have happened" in answer.json()["message"]
    assert (503, ("UNAVAILABLE", "UNAVAILABLE")) == (away.status_code, outcome_of(away))


def test_a_flood_of_strangers_or_of_one_caller_takes_no_turn_of_another(world, address):
    """The daemon refuses more than 64 calls at once on a connection, and holds each refusal for a while."""
    busy = world.token(user_id="busy", chat_ids=(), quota={"calls_per_second": 0})
    quiet = world.token(user_id="quiet", chat_ids=())
    flooded = Event()

    def flood(n: int) -> set[int]:
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            statuses = set()
            while not flooded.is_set():
                caller = Caller(http, f"rubbish{n}.{len(statuses)}" if n % 2 else busy)
                statuses.add(caller.send(LIST, {}).status_code)
            return statuses

    with ThreadPoolExecutor(160) as pool, httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        floods = [pool.submit(flood, n) for n in range(160)]
        seen = [Caller(http, quiet).send(LIST, {}).status_code for _ in range(30)]
        flooded.set()
        assert {200, 401} == set().union(*(one.result() for one in floods))
    assert {200} == set(seen)


@pytest.mark.parametrize("name", ["Authorization", "Origin", "Content-Type"])
def test_a_header_that_counts_is_there_once(world, address, name):
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        token = world.token(chat_ids=())
        given = [("Authorization", f"Bearer {token}"), ("Content-Type", JSON), ("Origin", address.strip("/"))]
        more = next((key, value) for key, value in given if key == name)
        assert 200 == http.post(f"/memoryd.v1.{LIST}", content="{}", headers=given).status_code
        answer = http.post(f"/memoryd.v1.{LIST}", content="{}", headers=[*given, more])
    assert (400, True) == (answer.status_code, "twice" in answer.text)


def test_what_the_door_refuses_is_charged_for(world, http):
    """A body that is none costs as much as a call that is one."""
    caller = Caller(http, world.token(chat_ids=(), quota={"calls_per_second": 4}))
    answers = {http.post(f"/memoryd.v1.{LIST}", content="{", headers=caller.headers).status_code for _ in range(9)}
    assert {400, 429} == answers


def test_a_door_before_the_admin_socket_lets_no_one_in_without_a_token(folder):
    """The daemon may be away when the door begins, so the door cannot find out."""
    endpoint = f"unix://{folder}/run/admin.sock"
    with door(endpoint) as (address, _), running(folder, config=NO_MODEL) as daemon:
        assert endpoint == daemon.endpoint
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            for caller in (Caller(http), Caller(http, "rubbish")):
                assert until(lambda caller=caller: caller.send(LIST, {"user_id": "alice"}).status_code == 401)


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (2, 1, True) == (done.returncode, len(done.stderr.splitlines()), "is no certificate in PEM" in done.stderr)


def test_a_socket_that_asks_for_no_token_is_refused(world):
    sandbox = f"unix://{world.sandbox().directory}/memory.sock"
    for endpoint in (world.daemon.endpoint, sandbox):
        command = [sys.executable, "-m", "memoryd", "http", "--endpoint", endpoint, "--listen", "127.0.0.1:0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (2, True) == (done.returncode, "without a token" in done.stderr)


def test_it_finds_the_shared_socket_of_the_configuration(world, tmp_path):
    place = tmp_path / "memoryd.toml"
    place.write_text(f'[shared]\nsocket = "{world.shared.removeprefix("unix://")}"\n')
    command = [sys.executable, "-m", "memoryd", "http", "--config", str(place), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().strip().removeprefix("memoryd: ")
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            assert 200 == Caller(http, world.token(chat_ids=())).send(LIST, {}).status_code
        process.terminate()
    place.write_text("")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (2, True) == (done.returncode, "there is no shared socket" in done.stderr)


def test_what_comes_over_http_is_what_comes_over_grpc(world, http):
    token = world.token(user_id="both", chat_ids=())
    Caller(http, token).told(ADD, {"content": "I keep bees"})
    with world.client(world.shared, token) as client, MemoryClient(world.daemon.endpoint, user_id="both") as host:
        assert ["I keep bees"] == [memory.content for memory in client.pages()]
        assert ["sandbox"] == [memory.trust.value for memory in host.pages()]
