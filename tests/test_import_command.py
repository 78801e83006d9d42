"""`memoryd import` of other systems' files, by the real command on a real daemon: told, resumed, and undone."""

from __future__ import annotations

import json
import random
import subprocess
import time

import pytest

from memoryd.model.memory import Kind
from memoryd.model.query import Filter
from tests.forking import begin_command, run_command
from tests.import_samples import make_samples
from tests.support import BIN, PATIENCE_S, Daemon, running, short_folder, until

MANY = 1500


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return make_samples(tmp_path_factory.mktemp("samples"))


def command(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        [BIN / "memoryd", *words, "--socket", daemon.endpoint.removeprefix("unix://")],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def imported(daemon: Daemon, *words: str) -> dict:
    done = command(daemon, "import", *words, "--json")
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def test_every_sample_comes_in_and_comes_once(daemon, samples, user):
    for name, path in samples.items():
        told = [imported(daemon, str(path), "--user", user, *more) for more in (["--dry-run"], [], [])]
        dry, first, again = (one["counts"] for one in told)
        if name not in {"mem0:list", "claude:zip", "langgraph:lines"}:  # they come with their likes
            assert dry == first, name
        assert not any("stored" in counts for counts in again.values()), name
        assert told[0]["left_out"] == told[1]["left_out"]
    with daemon.client(user) as client:
        memories = {one.external_id: one for one in client.pages(filter=Filter(include_superseded=True))}
        assert ("Lives in Tromsø", "mem0", "imported") == (
            memories["m-2"].content, memories["m-2"].import_id, memories["m-2"].trust.value,
        )  # fmt: skip
        assert memories["m-2"].id == memories["m-2#0"].superseded_by
        assert 4 == client.thread("chatgpt:talk").message_count
        found = client.search("which package manager?", filter=Filter(kinds=frozenset({Kind.NOTE})), min_score=0.0)
        assert "CLAUDE.md" in [hit.memory.key for hit in found.hits]
        until(lambda: [one for one in client.pages() if "allotment" in one.content])  # learnt from what was said


def test_what_came_of_it_is_told_in_words(daemon, samples, user):
    path = str(samples["chatgpt"])
    dry = command(daemon, "import", path, "--user", user, "--dry-run")
    assert dry.stdout.startswith("would store: 4 messages\nleft out:\n")
    done = command(daemon, "import", path, "--user", user)
    assert "  1 × it is reasoning: conversation talk, message th\n" in done.stdout
    assert "known from before: 4 messages" in command(daemon, "import", path, "--user", user).stdout
    done = command(daemon, "import", str(samples["mem0"]), "--user", user)
    assert f"memory delete --import-id mem0 --user {user} --dry-run" in done.stderr
    gone = run_command(
        [BIN / "memory", "delete", "--import-id", "mem0", "--user", user, "--endpoint", daemon.endpoint],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert 2 == len(gone.stdout.splitlines())


def test_who_it_is_of_is_said_or_taken_from_the_file(daemon, tmp_path, user):
    path = tmp_path / "mem0.json"
    records = [
        {"id": str(n), "memory": f"Number {n} is mine", "user_id": f"{user}-{'ab'[n % 2]}", "agent_id": "bot"}
        for n in range(4)
    ]
    path.write_text(json.dumps([*records, {"id": "9", "memory": "Whose is this?"}]))
    for words, said in (
        ([], "--user NAME, or --map user=user_id"),
        (["--user", user], "is of 2 users"),
        (["--map", "user=userid"], "FIELD is one of user_id, agent_id"),
        (["--map", "who=user_id"], "--map who=user_id must be"),
        (["--user", user, "--shared"], "--shared needs the chat"),
        (["--chat", "team"], "--chat needs --shared"),
    ):
        refused = command(daemon, "import", str(path), *words)
        assert (2, True) == (refused.returncode, said in refused.stderr), refused.stderr
    told = imported(daemon, str(path), "--user", f"{user}-a")
    assert ({"stored": 2}, 3) == (told["counts"]["memory"], sum(one["count"] for one in told["left_out"].values()))
    told = imported(daemon, str(path), "--map", "user=user_id", "--map", "agent=agent_id")
    assert {"stored": 4} == told["counts"]["memory"]
    assert ["it has no user_id that says whose it is"] == list(told["left_out"])
    with daemon.client(f"{user}-b") as client:
        bot = client.acting_for(user_id=f"{user}-b", agent_id="bot")
        assert ["Number 1 is mine", "Number 3 is mine"] == sorted(one.content for one in bot.pages())


def test_an_export_of_memoryd_is_not_taken_for_a_stranger_s_file(daemon, tmp_path, user):
    path = tmp_path / "chats.json"
    path.write_text(f"{json.dumps({'type': 'header', 'format': 1})}\n")
    done = command(daemon, "import", str(path), "--user", user)
    assert (2, True) == (done.returncode, "an export of memoryd, which says itself whose" in done.stderr)
    assert 2 == command(daemon, "import", "-", "--user", user).returncode


def test_the_notes_of_two_projects_stand_side_by_side_and_the_second_of_one_path_is_named(daemon, tmp_path, user):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "CLAUDE.md").write_text(f"# Project {name}\n")
    first, second = (str(tmp_path / name / "CLAUDE.md") for name in ("one", "two"))
    assert {"stored": 1} == imported(daemon, first, "--user", user)["counts"]["note"]
    told = imported(daemon, second, "--user", user)
    assert ({"kept": 1}, ["file CLAUDE.md"]) == (
        told["counts"]["note"],
        *(one["first"] for one in told["left_out"].values()),
    )
    assert {"stored": 1} == imported(daemon, second, "--user", user, "--prefix", "two")["counts"]["note"]
    with daemon.client(user) as client:
        assert ["CLAUDE.md", "two/CLAUDE.md"] == [note.path for note in client.all_notes()]


def test_what_is_not_what_it_was_taken_for_ends_with_an_error(daemon, samples, user):
    done = command(daemon, "import", str(samples["claude"]), "--user", user, "--as", "chatgpt")
    assert (1, True) == (done.returncode, "2 × it is no conversation" in done.stdout)


def test_a_masked_credential_and_a_deleted_memory_are_told(daemon, tmp_path, user):
    path = tmp_path / "own.jsonl"
    lines = [
        {"type": "message", "thread": "t", "content": f"the token is ghp_{'a1B2' * 9}"},
        {"content": "I keep bees"},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert {"count": 1, "first": ["line 1"]} == imported(daemon, str(path), "--user", user)["masked"]
    with daemon.client(user) as client:
        assert 1 == client.delete_matching(filter=Filter(import_id="jsonl")).deleted_count
    told = imported(daemon, str(path), "--user", user)
    assert ["it was deleted here, and is not brought back"] == list(told["left_out"])


def test_what_a_chat_keeps_comes_to_the_chat(daemon, samples, user):
    words = (str(samples["jsonl"]), "--user", user, "--chat", f"{user}-team", "--shared")
    assert {"memory": {"stored": 2}, "message": {"stored": 1}, "note": {"stored": 1}} == imported(daemon, *words)[
        "counts"
    ]
    with daemon.client(user) as client:
        assert [] == list(client.pages())
        team = client.acting_for(user_id=user, chat_id=f"{user}-team")
        assert {"I keep bees", "I play the violin"} == {one.content for one in team.pages()}
        assert "by train" == team.note("plans/summer", shared=True).text


def test_what_is_wrong_is_told_and_what_stands_before_it_is_stored(daemon, samples, tmp_path, user):
    data = samples["claude"].read_bytes()
    cut = tmp_path / "conversations.json"
    cut.write_bytes(data[: data.index(b'"talk-2"') + 20])
    done = command(daemon, "import", str(cut), "--user", user)
    assert (65, True) == (done.returncode, "cut or damaged after item 1" in done.stderr)
    with daemon.client(user) as client:
        assert 3 == client.thread("claude:talk-1").message_count
    secret = tmp_path / "own.jsonl"
    secret.write_text(
        '"my password is hunter2-Zq81"\n"<script>alert(1)</script> \\u202e\\u001b[31m"\n' + '"I keep bees"\n' * 2
    )
    told = imported(daemon, str(secret), "--user", user, "--as", "jsonl")
    assert {"rejected": 1, "stored": 2} == told["counts"]["memory"]
    assert {"count": 1, "first": ["line 1"]} == told["left_out"]["it holds a credential"]
    assert {"count": 1, "first": ["line 4"]} == told["left_out"]["it comes twice in the file"]
    shown = run_command(
        [BIN / "memory", "list", "--user", user, "--endpoint", daemon.endpoint],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    ).stdout  # fmt: skip
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_of_what_is_learnt_from_two_exports_the_later_holds_however_they_come(tmp_path):
    talks = {"new": (2024, "I live in Kiel now.", "My favorite color is red."),
             "old": (2020, "I live in Bonn.", "My favorite color is blue.")}  # fmt: skip
    for name, (year, *texts) in talks.items():
        messages = [
            {"uuid": f"{name}-{n}", "sender": "human", "text": text, "created_at": f"{year}-06-0{n + 1}T10:00:00Z"}
            for n, text in enumerate(texts)
        ]
        (tmp_path / name).write_text(json.dumps([{"uuid": name, "chat_messages": messages}]))
    with short_folder() as place, running(place, config="[learning]\nwait_s = 0.1\n") as daemon:
        for name in talks:
            imported(daemon, str(tmp_path / name), "--user", "alice")
            with daemon.client("alice") as client:
                until(lambda: 2 <= sum(one.source.thread_id == f"claude:{name}" for one in _all(client)))  # noqa: B023
        with daemon.client("alice") as client:
            run = client.run_job("imports")
            until(lambda: client.job_run(run.id).state.value == "done")
            texts = [one.content.rstrip(".") for one in client.pages()]
            assert ["I live in Kiel now", "My favorite color is red"] == sorted(texts)


def _all(client):
    return list(client.pages(filter=Filter(include_superseded=True)))


def test_an_import_that_is_killed_and_begun_again_has_each_item_once(tmp_path):
    path = tmp_path / "many.jsonl"
    lines = [
        {"type": "memory", "id": str(n), "content": f"I have seen bird number {n} at the lake"} for n in range(MANY)
    ]
    lines += [{"type": "message", "thread": "t", "id": f"m{n}", "content": f"message {n}"} for n in range(MANY // 3)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    rng = random.Random(7)
    with short_folder() as place, running(place) as daemon:
        words = ["import", str(path), "--user", "alice", "--socket", daemon.endpoint.removeprefix("unix://")]
        for _ in range(3):
            run = begin_command([BIN / "memoryd", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.8, 2.0))
            daemon.kill()
            run.wait(PATIENCE_S)
            daemon.start()
        run = begin_command([BIN / "memoryd", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1.0)
        run.kill()
        run.wait(PATIENCE_S)
        told = imported(daemon, str(path), "--user", "alice")
        assert {"memory", "message"} == told["counts"].keys()
        with daemon.client("alice") as client:
            kept = [one.external_id for one in client.pages(filter=Filter(include_superseded=True))]
            assert sorted(map(str, range(MANY))) == sorted(kept)
            said = [message.id for message in client.all_messages("jsonl:t")]
            assert sorted(f"m{n}" for n in range(MANY // 3)) == sorted(said)
