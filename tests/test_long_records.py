"""Records of an export that are too long for one call."""

from __future__ import annotations

from memory_client import MessageDraft, ToolCall

from tests.support import PATIENCE_S, running
from tests.test_transfer import NO_MODEL, command


def test_a_message_that_no_call_takes_is_named_and_all_others_are_imported(folder):
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    out = folder / "all.jsonl"
    with running(folder / "a", config=NO_MODEL) as daemon, daemon.client(timeout_s=PATIENCE_S) as client:
        calls = tuple(ToolCall("t", '"' * 60_000, str(n)) for n in range(40))
        client.append("a", [MessageDraft(content="first")])
        client.append("huge", [MessageDraft(role="assistant", content="x", tool_calls=calls)])
        client.append("later", [MessageDraft(content="last")])
        done = command(daemon, "export", "-o", str(out))
        assert 0 == done.returncode, done.stderr
    with running(folder / "b", config=NO_MODEL) as daemon, daemon.client() as client:
        done = command(daemon, "import", str(out))
        assert (1, True) == (done.returncode, b"left out: line " in done.stderr and b"(message " in done.stderr)
        assert ["last"] == [message.content for message in client.messages("later").messages]
        assert ["first"] == [message.content for message in client.messages("a").messages]
