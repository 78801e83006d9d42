"""BuildContext of a daemon: relevance by the packaged model, tokenizers, permissions, and the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from memory_client import Draft, InvalidArgument, MessageDraft, PermissionDenied
from tokenizers import Tokenizer, models, pre_tokenizers

from memoryd.embedding import onnx
from tests.doors import a_world
from tests.support import running

FACTS = ["my wife Sarah is allergic to peanuts", "I am vegetarian", "the staging server is called blue-falcon"]
RELATED = ["Plan a dinner for Sarah", "What should I cook tonight?", "How do I deploy to staging?"]
UNRELATED = [
    "Write a haiku about spring",
    "What is the capital of Australia?",
    "Explain quantum entanglement simply",
    "Convert 5 miles to kilometres",
    "Name three sorting algorithms",
]


PACKAGED = Path(onnx.__file__).parent / "data" / "tokenizer.json"


def names(built) -> list[str]:
    return [section.name for section in built.sections]


def test_what_has_nothing_to_do_with_a_prompt_is_left_out(daemon, user):
    with daemon.client(user) as client:
        client.add_batch([Draft(content=fact) for fact in FACTS])
        client.append("t", [MessageDraft(content=fact) for fact in FACTS])
        client.set_working_memory("prefers short answers")
        for prompt in UNRELATED:
            built = client.context(prompt)
            assert ["profile", "known_people", "working_memory"] == names(built), prompt
            assert [FACTS[1]] == [line[2:] for line in built.sections[0].text.splitlines()[2:]]
        for prompt, answer in zip(
            ("Plan a dinner for Sarah", "What should I cook tonight?", "How do I deploy to staging?"),
            FACTS,
            strict=True,
        ):
            built = client.context(prompt)
            assert answer in built.text, prompt
            assert {"relevant_memory", "other_threads"} <= {*names(built)}


def word_tokenizer() -> Tokenizer:
    """A tokenizer with one token a word."""
    made = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))  # noqa: S106  not a password
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def test_tokens_are_counted_by_a_tokenizer_that_is_installed(folder):
    (folder / "tokenizers" / "nested").mkdir(parents=True)
    word_tokenizer().save(str(folder / "tokenizers" / "words.json"))
    word_tokenizer().save(str(folder / "tokenizers" / "nested" / "tokenizer.json"))
    shutil.copy(PACKAGED, folder / "tokenizers" / "wordpiece.json")
    (folder / "tokenizers" / "broken.json").write_text("{}")
    with running(folder) as daemon, daemon.client("alice") as client:
        client.append("t", [MessageDraft(content=f"message number {n} of many") for n in range(50)])
        for name in ("words", "nested"):
            for tokens in (30, 100, 1000):
                built = client.context("", thread_id="t", max_tokens=tokens, tokenizer=name, max_recent_messages=50)
                assert len(built.text.split()) == built.token_count <= tokens
            assert 50 == len(built.sections[0].items)
        real = Tokenizer.from_file(str(PACKAGED))
        real.no_truncation()
        real.no_padding()
        client.set_summary("t", "über Zürich 東京 " * 300)
        for tokens in (20, 77, 300, 900):
            built = client.context("", thread_id="t", max_tokens=tokens, tokenizer="wordpiece", max_recent_messages=50)
            assert len(real.encode(built.text, add_special_tokens=False).ids) == built.token_count <= tokens
            assert tokens < 30 or built.token_count > 0.8 * tokens
        for name in ("absent", "../words", "words.json", "broken"):
            with pytest.raises(InvalidArgument, match="tokenizer") as caught:
                client.context("", thread_id="t", tokenizer=name)
            assert "tokenizer" == caught.value.field
        with pytest.raises(InvalidArgument, match="there is: broken, wordpiece, words, nested"):
            client.context("", thread_id="t", tokenizer="absent")


def test_a_grant_has_the_sections_that_its_permissions_allow(folder):
    with a_world(folder) as world, world.admin() as host:
        host.append("t", [MessageDraft(content="we spoke of figs")])
        host.set_working_memory("buy figs")
        host.add("I like figs")
        cases = [
            (("context",), ["relevant_memory"]),
            (("context", "read_messages"), ["relevant_memory", "working_memory"]),
            (("context", "search_messages"), ["relevant_memory", "other_threads"]),
            (
                ("context", "read_messages", "search_messages"),
                ["relevant_memory", "working_memory", "other_threads"],
            ),
        ]
        for allow, shown in cases:
            with world.inside(world.sandbox(*allow, chat_ids=())) as inside:
                assert shown == names(inside.context("figs")), allow
                for name, permission in (("recent_messages", "read_messages"), ("other_threads", "search_messages")):
                    if permission not in allow:
                        with pytest.raises(PermissionDenied, match=permission):
                            inside.context("figs", sections=[name])
                if "read_messages" in allow:
                    assert "recent_messages" in names(inside.context("figs", thread_id="t"))
                else:
                    with pytest.raises(PermissionDenied, match="read_messages"):
                        inside.context("figs", thread_id="t")


def test_text_of_lower_trust_is_marked_wherever_it_stands(folder):
    with a_world(folder) as world, world.inside(world.sandbox("full", chat_ids=())) as inside:
        inside.add("I like figs")
        inside.append("t", [MessageDraft(content="we spoke of figs"), MessageDraft(content="ok", role="assistant")])
        inside.set_working_memory("buy figs")
        inside.set_working_memory("eat figs", thread_id="t")
        inside.set_summary("t", "They spoke of figs.")
        built = inside.context("figs", thread_id="t")
        lines = [line for section in built.sections for line in section.text.splitlines()[2:]]
        assert 6 <= len(lines)
        assert all(line.endswith("[unverified: sandbox]") for line in lines)


def test_a_conversation_of_the_client_builds_its_own_context(daemon, user):
    with daemon.client(user) as client:
        talk = client.conversation("cli")
        talk.user("I moved to Rome")
        assert "- [user] I moved to Rome" in talk.context("Where do I live?").text
        assert talk.context("Where do I live?", sections=["recent_messages"]).sections[0].items[0].thread_id == "cli"


def test_the_command_shows_the_context_of_a_thread(memory, daemon, user):
    with daemon.client(user) as client:
        client.append(
            "cli:x", [MessageDraft(content="I moved to Rome"), MessageDraft(content="Nice", role="assistant")]
        )
    code, out, _ = memory("context", "--thread", "cli:x", "--section", "recent_messages", "Where do I live?")
    assert 0 == code
    assert "## Recent messages\n\n- [user] I moved to Rome\n- [assistant] Nice\n" in out
    code, out, _ = memory("context", "--json", "--thread", "cli:x", "--recent", "1")
    assert ["## Recent messages\n\n- [assistant] Nice\n"] == [one["text"] for one in json.loads(out)["sections"]]
    assert 2 == memory("context")[0]
    code, _, err = memory("context", "--thread", "cli:x", "--section", "recents")
    assert (2, True) == (code, "must be one of profile, known_people" in err)
