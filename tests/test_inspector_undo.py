"""Undo in the inspector, and forms that others have overtaken: nothing of theirs is lost."""

from __future__ import annotations

import pytest
from memory_client import EntityType, MessageDraft, Source

from tests.web_helpers import contents, pressed, shown, undone, whose


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_undo_of_a_correction_leaves_what_was_corrected_again(site, alice):
    kept = alice.add("The printer is on the desk").memory
    page = pressed(
        site, site.get(f"memories/{kept.id}", **whose(alice)), "Correct", content="The printer is on the shelf"
    )
    [now] = alice.page().memories
    alice.correct(now.id, "The printer is in the shed")
    assert "was not undone" in shown(undone(site, page))
    assert ["The printer is in the shed"] == contents(alice)


def test_undo_of_an_add_leaves_what_others_have_confirmed(site, alice):
    page = site.post("memories", owner=alice.identity.user_id, content="The tap drips", kind="fact")
    [now] = alice.page().memories
    alice.confirm(now.id)
    assert "was not undone" in shown(undone(site, page))
    assert ["The tap drips"] == contents(alice)


def test_undo_of_a_decision_brings_nothing_back_that_was_deleted_since(site, alice):
    older = alice.add("I work as a teacher").memory
    alice.add("I work as a translator")
    page = pressed(site, site.get("contested", **whose(alice)), "The newer holds 1", choice="newer")
    alice.restore(older.id)
    assert "was not undone" in shown(undone(site, page))
    alice.delete(older.id)
    assert "was not undone" in shown(undone(site, page))
    assert ["I work as a translator"] == contents(alice)


def test_labels_that_others_have_set_are_not_overwritten(site, alice):
    kept = alice.add("I keep bees", tags=["a"]).memory
    page = site.get(f"memories/{kept.id}", **whose(alice))
    alice.update(kept.id, tags=["a", "urgent"])
    lost = pressed(site, page, "Set", 409, tags="a", category="garden")
    assert "changed meanwhile" in shown(lost)
    assert "garden" == lost.find("input", id="category")[0].attributes["value"]
    assert (("a", "urgent"), "") == (alice.get(kept.id).tags, alice.get(kept.id).category)


def test_what_is_sent_as_it_was_changes_nothing_and_ends_of_lines_stay(site, alice):
    alice.put_note("crlf", "a\r\nb\r\n")
    page = site.get("notes/one", path="crlf", **whose(alice))
    assert "says that already" in shown(pressed(site, page, "Save", text="a\r\nb\r\n"))
    assert 1 == alice.note("crlf").revision
    pressed(site, page, "Save", text="a\nb\nc\n")
    assert "a\r\nb\r\nc\r\n" == alice.note("crlf").text
    alice.put_note("mixed", "a\r\nb\n")
    page = site.get("notes/one", path="mixed", **whose(alice))
    assert "says that already" in shown(pressed(site, page, "Save", text="a\r\nb\r\n"))
    kept = alice.add("I keep bees\r\nand goats").memory
    page = site.get(f"memories/{kept.id}", **whose(alice))
    assert "says that already" in shown(pressed(site, page, "Correct", content="I keep bees\nand goats"))
    assert [kept.id] == [one.id for one in alice.page().memories]


def test_all_that_contests_a_memory_stands_on_its_page(site, alice):
    for job in ("baker", "pilot", "teacher"):
        alice.add(f"I work as a {job}")
    for one in alice.page().memories:
        told = shown(site.get(f"memories/{one.id}", **whose(alice)))
        others = {other.content for other in alice.page().memories if other.id in one.contested_with}
        assert others
        assert all(content in told for content in others)
    assert "because" in shown(site.get("contested", **whose(alice)))


def test_who_erases_what_was_learnt_is_told_of_the_message_that_stays(site, alice):
    alice.append("trip", [MessageDraft(content="My passport expires in August")])
    said = alice.messages("trip").messages[0]
    source = Source(thread_id="trip", message_ids=(said.id,))
    kept = alice.add("The passport expires in August", source=source).memory
    page = site.get(f"memories/{kept.id}/erase", **whose(alice))
    assert "The message that it was learnt from stays" in shown(page)
    assert [one for one in page.find("a") if f"message={said.id}" in one.attributes["href"]]


def test_a_type_is_taken_back_set_again_and_left_where_it_is_another_meanwhile(site, alice):
    alice.add("My sister Helena lives in Lyon")
    [helena] = alice.people().people
    page = site.post(f"people/{helena.id}/type", owner=alice.identity.user_id, type="location")
    assert "the type is location now" in shown(page)
    page = undone(site, page)
    assert "person" == alice.entity(helena.id).entity.type.value
    page = pressed(site, page, "Redo")
    assert "the type is location again" in shown(page)
    alice.set_entity_type(helena.id, EntityType.ORGANIZATION)
    assert "is organization meanwhile, and stays" in shown(undone(site, page))
