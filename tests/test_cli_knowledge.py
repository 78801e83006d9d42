"""The commands of knowledge, as a shell sees them."""

from __future__ import annotations

import json

from memory_cli.output import leg_lines
from memory_cli.parser import ENTITY_TYPES
from memory_client import Leg, LegScore, MemoryClient, MessageDraft

from memoryd.model.entity import GIVEN_TYPES
from tests.forking import run_command
from tests.support import BIN


def test_what_changed_is_told_and_its_history_says_why(memory):
    red = memory("add", "My favorite color is red")[1].split()[1]
    _, out, _ = memory("add", "My favorite color is blue")
    assert f"(replaces {red})" in out
    blue = out.split()[1]
    _, out, _ = memory("history", blue)
    assert [red, blue] == [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert "one_value: 'favorite color' holds one value at a time" in out
    shown = json.loads(memory("history", "--json", blue)[1])
    assert ["superseded", "live"] == [item["state"] for item in shown["memories"]]
    assert "claims" not in shown["memories"][0]


def test_a_contested_pair_is_marked_and_decided(memory):
    teacher = memory("add", "I work as a teacher")[1].split()[1]
    code, out, _ = memory("add", "I work as a translator")
    assert (0, True) == (code, f"(contests {teacher}: memory history tells why)" in out)
    translator = out.split()[1]
    assert f"[contested by the newer: I work as a translator, {translator}, " in memory("search", "teacher")[1]
    assert memory("search", "teacher")[1].splitlines()[0].endswith(f"]  {teacher}")  # the answer, and not its partner
    assert f"confirmed {teacher} (replaces {translator})" in memory("confirm", teacher)[1]
    assert "protected:   yes" in memory("get", teacher)[1]
    assert "superseded" in memory("correct", teacher, "I", "work", "as", "a", "head", "teacher")[1]
    assert 7 == memory("correct", teacher, "too late")[0]
    assert 3 == memory("history", "a" * 26)[0]


def test_people_are_listed_shown_renamed_merged_and_forgotten(memory):
    memory("add", "my wife Sara likes Italian food")
    memory("add", "Sally plays chess")
    code, out, _ = memory("people")
    assert (0, {"Sara (wife; 1 memory)", "Sally (1 memory)"}) == (code, set(out.splitlines()))
    assert (
        "renamed: Sarah Miller (wife; also Sara; 1 memory)"
        in memory("person", "my wife", "--rename", "Sarah Miller")[1]
    )
    assert "set to other: Sally (1 memory)" in memory("person", "Sally", "--type", "other")[1]
    assert "Sally" not in memory("people")[1]
    assert "other, id " in memory("person", "Sally")[1]
    assert "person" == json.loads(memory("person", "Sally", "--type", "person", "--json")[1])["type"]
    code, _, err = memory("person", "Sally", "--type", "email")
    assert (2, True) == (code, "person, organization" in err.replace("'", ""))
    _, out, _ = memory("person", "Sally", "--merge-into", "Sara")
    undo = out.split("--unmerge ")[1].strip()
    assert "(about Sarah Miller)" in memory("search", "--about", "Sally", "chess")[1]
    assert "taken out: Sally" in memory("person", "--unmerge", undo)[1]
    assert 3 == memory("person", "Nobody")[0]
    shown = json.loads(memory("person", "Sara", "--json")[1])
    assert ("person", ["wife"], 1) == (shown["entity"]["type"], shown["entity"]["relations"], len(shown["memories"]))
    preview = memory("forget", "Sarah Miller", "--dry-run")[1]
    assert "would erase 1 memory about Sarah Miller" in preview
    assert "likes Italian food" in preview  # what would go, in its words
    code, _, err = memory("forget", "Sarah Miller")
    assert (2, True) == (code, "--yes" in err)
    assert 0 == memory("forget", "Sara", "--yes")[0]  # an alias
    assert ["Sally (1 memory)"] == memory("people")[1].splitlines()


def test_forget_takes_exact_names_one_an_argument_or_erases_nothing(memory):
    for text in ("Sarah likes tea", "Sarah plays chess", "Bob likes tea", "Ann sings"):
        memory("add", text)
    for words in (["Sarah Connor"], ["Sarah", "Connor"], ["Anna"], ["Sara"], ["Sarah", "Nobody"], ["Bob", "Anne"]):
        code, out, err = memory("forget", *words, "--yes")
        assert (3, "") == (code, out), words
        assert "nothing was erased" not in err
    assert "near are Sarah (" in memory("forget", "Sarah Connor", "--yes")[2]
    assert "near are Ann (" in memory("forget", "Anna", "--yes")[2]
    assert 4 == len(memory("list")[1].splitlines())
    code, out, _ = memory("forget", "Sarah", "Bob", "--dry-run")
    assert (0, 4) == (code, out.count("likes tea") + out.count("plays chess") + out.count("would erase 1 memory"))
    assert 4 == len(memory("list")[1].splitlines())
    shown = json.loads(memory("forget", "Sarah", "Bob", "--yes", "--json")[1])
    assert [2, 1] == [person["purged_count"] for person in shown["people"]]
    assert ["Ann sings (about Ann)"] == [line.split("  ")[2] for line in memory("list")[1].splitlines()]


def test_a_name_of_two_words_without_quotes_is_not_taken_for_two(memory):
    for text in ("Sarah Connor likes tea", "my friend Sarah sings", "my boss Connor is strict"):
        memory("add", text)
    code, out, err = memory("forget", "Sarah", "Connor", "--yes")
    assert (0, "") != (code, out)
    assert code in {2, 3}
    assert 3 == len(memory("list")[1].splitlines()), err


def test_what_changes_a_person_takes_exact_names_too(memory):
    memory("add", "Ann sings")
    memory("add", "Bob sings")
    assert 3 == memory("person", "Anna", "--rename", "Zoe")[0]
    assert 3 == memory("person", "Anna", "--merge-into", "Bob")[0]
    assert 2 == memory("person", "Ann", "Bob", "--rename", "Zoe")[0]
    assert 0 == memory("person", "Anna")[0]  # reading may guess
    assert {"Ann (1 memory)", "Bob (1 memory)"} == set(memory("people")[1].splitlines())


def test_delete_about_takes_exact_names(memory):
    memory("add", "Ann sings")
    memory("add", "--about", "the boat", "it leaks")
    for name in ("Anna", "Annie", "boat"):
        assert 3 == memory("delete", "--about", name)[0]
        assert 3 == memory("delete", "--about", name, "--dry-run")[0]
    assert 2 == len(memory("list")[1].splitlines())
    assert 0 == memory("delete", "--about", "the boat")[0]
    assert 0 == memory("delete", "--about", "ann")[0]
    assert "" == memory("list")[1]


def test_a_delete_by_filter_shows_first_and_then_does(memory):
    for text in ("the old address is 1 Main Street", "an old address book", "something else"):
        memory("add", text)
    _, out, _ = memory("delete", "--matching", "OLD ADDRESS", "--dry-run")
    assert 2 == len(out.splitlines())
    assert 3 == len(memory("list")[1].splitlines())
    assert 2 == len(memory("delete", "--matching", "old address")[1].splitlines())
    assert 1 == len(memory("list")[1].splitlines())
    assert 2 == memory("delete")[0]
    assert 2 == memory("delete", "--matching", "so")[0]
    assert 2 == memory("delete", "abcdefgh", "--matching", "something")[0]


def test_a_credential_is_declined_and_not_repeated(memory):
    code, out, err = memory("add", "my PIN is 4821")
    assert (4, "", True) == (code, out, "rejected: secret" in err)
    assert "4821" not in err


def test_every_new_command_has_examples_in_its_help():
    commands = "correct confirm history people person forget"
    upkeep = "decay enrich compact verify"
    for words in (*(["memory", name] for name in commands.split()), *(["memoryd", name] for name in upkeep.split())):
        done = run_command([BIN / words[0], words[1], "--help"], capture_output=True, text=True, check=True)
        assert "examples:" in done.stdout


def test_where_a_filter_leaves_nothing_it_is_said_what_no_memory_has(memory):
    memory("add", "Conceição is allergic to nuts", "--category", "allergy", "--tag", "food", "--about", "Conceição")
    for asked, said in (
        (("--category", "alergy"), "nothing found: no memory has the category 'alergy'"),
        (("--category", "allergy", "--tag", "foot"), "nothing found: no memory has the tag 'foot'"),
        (("--meta", "a=b"), "nothing found: no memory has the metadata 'a=b'"),
        (("--about", "Conceicaa"), "no one and nothing is known as 'Conceicaa'; near are Conceição ("),
        (
            ("--about", "Conceição", "--since", "2090-01-01"),
            "nothing found; --min-score 0 shows also what is no answer",
        ),
    ):
        code, out, err = memory("search", "nuts", *asked)
        assert (0, "") == (code, out)
        assert said in err
    assert "nothing like that is remembered: no memory has the tag 'foot'" in memory("list", "--tag", "foot")[2]
    memory("add", "--kind", "episode", "--tag", "chat", "hello")
    for states in ((), ("--kind", "episode")):
        listed = memory("list", "--tag", "chat", "--until", "2001-01-01", *states)
        assert "nothing like that is remembered\n" == listed[2]
    memory("add", "see www.a.example.org/\x1b[2Jgone/walter for jam")
    assert "\x1b" not in "".join(memory("search", "--about", "walter", "jam")[1:])
    assert "Conceição" in memory("search", "--about", "conceicao", "nuts")[1]


def test_the_types_that_the_command_offers_are_those_that_can_be_given():
    assert {one.value for one in GIVEN_TYPES} == {*ENTITY_TYPES}


def test_a_leg_that_moves_nothing_says_so():
    read, found = leg_lines([LegScore(Leg.VECTOR, 2, 0.5, 0.52), LegScore(Leg.READER, 1, 0.731, 0.0)])
    assert read.endswith("0.500 × 0.52, rank 2")
    assert found.endswith("0.731, moves no place, rank 1")


def test_the_way_to_erase_what_was_only_said_is_named_as_it_is_typed(memory, daemon, user):
    with MemoryClient(daemon.endpoint, user_id=user) as client:
        client.append("t", MessageDraft(content="Torvald called again"))
    code, _, said = memory("forget", "Torvald", "--yes")
    assert (3, True) == (code, "1 messages name it: --with-messages erases them" in said)
