"""
Calls as a crowd of users makes them, from a seed: the same seed asks the same questions.

A call is a method, a request as JSON, and the door that it goes through. Where a request needs an id that an earlier
answer gave, it holds the label of that id (`#12`); each side of a comparison puts its own id in its place.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

NAMES = (
    "Anna",
    "Bob",
    "Robert",
    "Sarah Connor",
    "Sarah",
    "Tom",
    "Thomas Miller",
    "Bill",
    "William",
    "Kate",
    "Liz",
    "José",
)
RELATIONS = ("wife", "boss", "sister", "brother", "dentist", "neighbour", "mother", "friend", "landlord", "colleague")
PLACES = ("Berlin", "Oslo", "Lisbon", "Paris", "Munich", "New York", "Kyoto", "São Paulo")
FIRMS = ("Acme", "Globex", "Initech", "Umbrella", "Hooli")
FOODS = ("peanuts", "sushi", "coffee", "green tea", "cheese", "steak", "mushrooms", "oat milk")
THINGS = ("car", "bike", "laptop", "office", "standup", "dentist appointment", "rent", "email", "phone number")
DAYS = ("Monday", "Tuesday", "Friday", "tomorrow", "next week", "May 3", "2026-07-01")
TEMPLATES = (
    "I live in {place}", "I moved to {place}", "I no longer live in {place}", "I work at {firm}", "I left {firm}",
    "I joined {firm} as an engineer", "I like {food}", "I don't like {food} anymore", "I hate {food}",
    "I'm allergic to {food}", "I'm not allergic to {food}", "my {relation} is {name}", "My {relation} {name} lives in {place}",
    "{name} is my {relation}", "{name} works at {firm}", "{name} moved from {place} to {other}", "{name} likes {food}",
    "{name} does not like {food}", "my {thing} is on {day}", "my {thing} moved to {day}", "my {thing} is {number}",
    "the {thing} costs {number} dollars", "{name}'s email is {slug}{number}@example.com", "@{slug} reviews pull requests",
    "I am {number} years old", "I turned {number}", "I run {number} km every week", "I prefer {food} over {drink}",
    "{name} and {second} met in {place} on {day}", "remember to call {name} on {day}", "I became a vegetarian",
    "I am vegan", "I eat {food} every day", "we use {firm} for billing", "we switched from {firm} to {rival}",
    "order {number} for {name} was shipped on {day}", "I speak German and {place} dialect", "{name} got married to {second}",
    "{name} got divorced", "I sold my {thing}", "my password is hunter2{number}x!Q", "the api key is sk-proj-{token}",
    "Ich wohne in {place}", "我住在北京 {number}", "J'habite à {place} depuis hier", "the plan for {place} is to see {name}",
    "I cancelled my trip to {place}", "my trip to {place} is in {day}", "{name}, {second} and I share an office",
    "yesterday I met {name} in {place}", "I have {number} cats", "my cat is called {name}", "<b>{name}</b> [x](http://e.co)",
)  # fmt: skip
KINDS = (
    "MEMORY_KIND_FACT",
    "MEMORY_KIND_PREFERENCE",
    "MEMORY_KIND_EVENT",
    "MEMORY_KIND_PROCEDURE",
    "MEMORY_KIND_REFLECTION",
)
QUESTIONS = (
    "Where do I live?", "Where does {name} live?", "What should I not eat?", "Who is my {relation}?", "what about {name}",
    "When is my {thing}?", "{food}", "Which company do I work for?", "email of {name}", "What is new in {place}?",
    "order {number}", "how old am I", "Was esse ich nicht?", "北京", "{name} {place} {day}", "who likes {food}?",
)  # fmt: skip
DOORS = ("admin", "admin", "admin", "admin", "admin", "box-a", "box-a", "box-b", "box-u")
USERS = ("alice", "bob")
CHATS = ("team", "family")
SANDBOXES = {
    "box-a": {"agent_id": "default", "user_id": "alice", "chat_ids": ["team"]},
    "box-b": {"agent_id": "default", "user_id": "bob", "chat_ids": ["team"]},
    "box-u": {"agent_id": "default", "user_id": "alice", "chat_ids": []},
}


@dataclass(slots=True)
class Call:
    """One call; `text` fields may hold labels of ids."""

    service: str
    method: str
    request: dict[str, Any]
    door: str = "admin"
    restart_before: bool = False


@dataclass(slots=True)
class Crowd:
    """Who talks, and which ids they have seen: memories and entities by the door and the user that saw them."""

    seed: int
    memories: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    entities: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    pages: list[tuple[Call, str]] = field(default_factory=list)
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def text(self, template: str) -> str:
        pick = self.dice.choice
        first, second = self.dice.sample(NAMES, 2)
        firm, rival = self.dice.sample(FIRMS, 2)
        place, other = self.dice.sample(PLACES, 2)
        food, drink = self.dice.sample(FOODS, 2)
        said = template.format(
            name=first, second=second, firm=firm, rival=rival, place=place, other=other, food=food, drink=drink,
            relation=pick(RELATIONS), thing=pick(THINGS), day=pick(DAYS), number=self.dice.randint(1, 60),
            slug=first.split()[0].lower(), token="".join(self.dice.choices("abcdefghijkABCDEFGH0123456789", k=40)),
        )  # fmt: skip
        if self.dice.random() < 0.06:
            said += self.dice.choice((" 🎉", "!", " ‮x", "  ", ". " + "More of the same. " * 40))
        return said

    def asker(self, door: str) -> dict[str, str]:
        """Who asks, as the request says it; a sandbox leaves out what it is bound to."""
        if door == "box-u":
            return {}
        chat = {"chat_id": "team"} if door != "admin" else {"chat_id": self.dice.choice(CHATS)}
        if door != "admin":
            return chat if self.dice.random() < 0.6 else {}
        who = {"user_id": self.dice.choice(USERS)}
        return who | chat if self.dice.random() < 0.5 else who

    def statement(self, asker: dict[str, str], door: str) -> dict[str, Any]:
        said: dict[str, Any] = {"content": self.text(self.dice.choice(TEMPLATES))}
        chance = self.dice.random
        if asker.get("chat_id") and chance() < 0.5:
            said["shared"] = True
        if chance() < 0.15:
            said["kind"] = self.dice.choice(KINDS)
        if chance() < 0.15:
            said["subjects"] = self.dice.sample([*NAMES, "my wife", "project x"], self.dice.randint(1, 2))
        if chance() < 0.15:
            said["tags"] = self.dice.sample(["work", "home", "food"], self.dice.randint(1, 2))
        if chance() < 0.08:
            said["key"] = self.dice.choice(["city", "diet", "theme"])
        if chance() < 0.08:
            said["metadata"] = {"from": self.dice.choice(["mail", "chat"]), "n": str(self.dice.randint(1, 3))}
        if chance() < 0.12:
            said["source"] = {
                "speaker": self.dice.choice(["user", "Bob", "alice", "Anna"]),
                "channel": self.dice.choice(["user", "extraction", "chat"]),
                "message_ids": [f"m{self.dice.randint(1, 30)}"],
            }
        if chance() < 0.1:
            said["event_time"] = f"2025-0{self.dice.randint(1, 9)}-11T10:00:00Z"
        if chance() < 0.1:
            said["confidence"] = self.dice.choice([0.3, 0.6, 0.9])
        if chance() < 0.03:
            said["expires_days"] = 30
        return said

    def filter(self) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        chance = self.dice.random
        if chance() < 0.3:
            wanted["subjects"] = [self.dice.choice([*NAMES, "my wife", "Sara", "nobody"])]
        if chance() < 0.2:
            wanted["tags"] = [self.dice.choice(["work", "home", "food"])]
        if chance() < 0.15:
            wanted["kinds"] = [self.dice.choice(KINDS)]
        if chance() < 0.1:
            wanted["event_time_from"] = "2025-03-01T00:00:00Z"
        if chance() < 0.05:
            wanted["metadata"] = {"from": "mail"}
        return wanted

    def calls(self, count: int) -> Iterator[Call]:
        """Yield calls; two thirds through, the daemons start anew."""
        for n in range(count):
            call = self._call()
            call.restart_before = n == count * 2 // 3
            yield call

    def _id(self, door: str, *, entities: bool = False) -> tuple[str, dict[str, str], str]:
        """Return an id's label with who saw it and where; now and then somebody else, or an id that nobody has."""
        known = self.entities if entities else self.memories
        if not known or self.dice.random() < 0.03:
            return door, self.asker(door), "aaaaaaaaaaaaaaaaaaaaaaaaaa"
        seen_at, asker, label = known[self.dice.randrange(max(0, len(known) - 60), len(known))]
        return (seen_at, asker, label) if self.dice.random() < 0.85 else (door, self.asker(door), label)

    def _call(self) -> Call:
        door = self.dice.choice(DOORS)
        asker = self.asker(door)
        name = self.dice.choice([*NAMES, "my wife", "my boss", "Sara", "anna", "Bobby"])
        kinds = (
            "add", "batch", "search", "list", "get", "delete", "restore", "history", "correct", "confirm", "stats",
            "context", "people", "entity", "rename", "merge", "unmerge", "forget", "match", "again", "wrong", "page", "admin",
            "append", "append_again", "messages", "ask_messages", "thread", "set", "compact", "session", "erase", "job",
        )  # fmt: skip
        weights = (34, 7, 16, 4, 2, 5, 4, 3, 4, 3, 1, 6, 2, 4, 1, 2, 1, 1, 2, 3, 3, 2, 1, 14, 2, 4, 5, 3, 3, 1, 3, 1, 2)
        kind = self.dice.choices(kinds, weights)[0]
        return getattr(self, f"_{kind}")(door, asker, name)

    def _add(self, door: str, asker: dict[str, str], _: str) -> Call:
        return Call("MemoryService", "AddMemory", {**asker, **self.statement(asker, door)}, door)

    def _again(self, door: str, asker: dict[str, str], _: str) -> Call:
        """A write with one of a few request ids, so that some are repeated and some are reused."""
        n = self.dice.randint(1, 12)
        request = {**asker, "content": f"note {n // 2} of the retry", "request_id": f"retry-{n}"}
        return Call("MemoryService", "AddMemory", request, door)

    def _batch(self, door: str, asker: dict[str, str], _: str) -> Call:
        items = [self.statement(asker, door) for _ in range(self.dice.randint(1, 6))]
        return Call("MemoryService", "BatchAddMemories", {**asker, "requests": items}, door)

    def _search(self, door: str, asker: dict[str, str], _: str) -> Call:
        request = {**asker, "query": self.text(self.dice.choice([*QUESTIONS, *TEMPLATES])), "filter": self.filter()}
        request |= {"limit": self.dice.choice([0, 1, 3, 10, 50]), "explain": self.dice.random() < 0.3}
        if self.dice.random() < 0.1:
            request |= {"include_superseded": True, "min_score": 0.2}
        return Call("MemoryService", "SearchMemories", request, door)

    def _list(self, door: str, asker: dict[str, str], _: str) -> Call:
        request = {**asker, "filter": self.filter(), "page_size": self.dice.choice([0, 2, 7, 50])}
        request |= {"include_superseded": self.dice.random() < 0.5, "include_expired": self.dice.random() < 0.5}
        return Call("MemoryService", "ListMemories", request, door)

    def _page(self, door: str, asker: dict[str, str], _: str) -> Call:
        if not self.pages:
            return self._list(door, asker, "")
        before, token = self.pages[-1]
        return Call(before.service, before.method, {**before.request, "page_token": token}, before.door)

    def _get(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        return Call("MemoryService", "GetMemory", {**asker, "id": label}, door)

    def _delete(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        request = {**asker, "id": label, "purge": self.dice.random() < 0.3, "allow_missing": self.dice.random() < 0.3}
        return Call("MemoryService", "DeleteMemory", request, door)

    def _restore(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        return Call("MemoryService", "RestoreMemory", {**asker, "id": label}, door)

    def _history(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        return Call("MemoryService", "GetMemoryHistory", {**asker, "id": label}, door)

    def _correct(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        content = self.text(self.dice.choice(TEMPLATES))
        return Call("MemoryService", "CorrectMemory", {**asker, "id": label, "content": content}, door)

    def _confirm(self, door: str, _: dict[str, str], __: str) -> Call:
        door, asker, label = self._id(door)
        return Call("MemoryService", "ConfirmMemory", {**asker, "id": label, "protect": self.dice.random() < 0.3}, door)

    def _stats(self, door: str, asker: dict[str, str], _: str) -> Call:
        return Call("MemoryService", "GetMemoryStats", asker, door)

    def _context(self, door: str, asker: dict[str, str], _: str) -> Call:
        request = {
            **asker,
            "prompt": self.text(self.dice.choice(QUESTIONS)),
            "max_tokens": self.dice.choice([0, 60, 400]),
        }
        return Call("ContextService", "BuildContext", request, door)

    def _people(self, door: str, asker: dict[str, str], _: str) -> Call:
        return Call("EntityService", "ListPeople", {**asker, "page_size": self.dice.choice([0, 3])}, door)

    def _entity(self, door: str, asker: dict[str, str], name: str) -> Call:
        return Call("EntityService", "GetEntity", {**asker, "name": name, "limit": 5}, door)

    def _rename(self, door: str, asker: dict[str, str], name: str) -> Call:
        return Call("EntityService", "RenameEntity", {**asker, "name": name, "new_name": f"{name} Fox"}, door)

    def _merge(self, door: str, asker: dict[str, str], name: str) -> Call:
        return Call("EntityService", "MergeEntities", {**asker, "name": name, "into": self.dice.choice(NAMES)}, door)

    def _unmerge(self, door: str, asker: dict[str, str], name: str) -> Call:
        if self.dice.random() < 0.5:
            door, asker, name = self._id(door, entities=True)
        given = {**asker, "id": name}
        return Call("EntityService", "UnmergeEntity", given, door)

    def _forget(self, door: str, asker: dict[str, str], name: str) -> Call:
        return Call("EntityService", "ForgetPerson", {**asker, "name": name, "dry_run": self.dice.random() < 0.5}, door)

    def _match(self, door: str, asker: dict[str, str], name: str) -> Call:
        request: dict[str, Any] = {**asker, "dry_run": self.dice.random() < 0.6, "purge": self.dice.random() < 0.2}
        how = self.dice.random()
        if how < 0.4:
            request["text"] = self.dice.choice([*PLACES, *FOODS])
        elif how < 0.7:
            request["filter"] = {"subjects": [name]}
        else:
            request["filter"] = {"tags": [self.dice.choice(["work", "food"])]}
        return Call("MemoryService", "DeleteMemories", request, door)

    def _place(self, asker: dict[str, str], door: str) -> dict[str, Any]:
        """A thread of somebody, of a few."""
        thread: dict[str, Any] = {**asker, "thread_id": f"{door}-{self.dice.randint(1, 4)}"}
        if asker.get("chat_id") and self.dice.random() < 0.4:
            thread["shared"] = True
        return thread

    def _append(self, door: str, asker: dict[str, str], _: str) -> Call:
        said: list[dict[str, Any]] = []
        for _ in range(self.dice.choice([1, 1, 2, 2, 4])):
            role = self.dice.choice(["USER", "USER", "ASSISTANT", "TOOL"])
            one = {"role": f"MESSAGE_ROLE_{role}", "content": self.text(self.dice.choice([*QUESTIONS, *TEMPLATES]))}
            if role == "TOOL":
                one["name"] = self.dice.choice(["search", "calendar"])
            if self.dice.random() < 0.05:
                one["id"] = f"own-{self.dice.randint(1, 20)}"
            said.append(one)
        request = {**self._place(asker, door), "messages": said}
        if self.dice.random() < 0.1:
            request["session_id"] = f"s{self.dice.randint(1, 3)}"
        return Call("ConversationService", "AppendMessages", request, door)

    def _append_again(self, door: str, asker: dict[str, str], _: str) -> Call:
        n = self.dice.randint(1, 8)
        place = {**asker, "thread_id": f"{door}-{n % 3}", "request_id": f"again-{n}"}
        request = {**place, "messages": [{"role": "MESSAGE_ROLE_USER", "content": f"said once, {n // 2}"}]}
        return Call("ConversationService", "AppendMessages", request, door)

    def _messages(self, door: str, asker: dict[str, str], _: str) -> Call:
        request = {**self._place(asker, door), "page_size": self.dice.choice([0, 2, 5])}
        request |= self.dice.choice(({}, {"in_view": True}, {"whole_turns": True}, {"max_tokens": 60}))
        return Call("ConversationService", "ListMessages", request, door)

    def _ask_messages(self, door: str, asker: dict[str, str], _: str) -> Call:
        request = {**asker, "query": self.text(self.dice.choice(QUESTIONS)), "top_k": self.dice.choice([0, 3])}
        if self.dice.random() < 0.2:
            request["exclude_thread_ids"] = [f"{door}-1"]
        return Call("ConversationService", "SearchMessages", request, door)

    def _thread(self, door: str, asker: dict[str, str], _: str) -> Call:
        method = self.dice.choice(["GetThread", "ListThreads", "GetSummary", "GetWorkingMemory", "ListSessions"])
        return Call("ConversationService", method, asker if method == "ListThreads" else self._place(asker, door), door)

    def _set(self, door: str, asker: dict[str, str], _: str) -> Call:
        place, text = self._place(asker, door), self.text(self.dice.choice(TEMPLATES))
        if self.dice.random() < 0.5:
            return Call("ConversationService", "SetSummary", {**place, "summary": text}, door)
        return Call("ConversationService", "SetWorkingMemory", {**place, "text": text}, door)

    def _compact(self, door: str, asker: dict[str, str], _: str) -> Call:
        return Call("ConversationService", "CompactThread", {**self._place(asker, door), "retain_recent": 2}, door)

    def _session(self, door: str, asker: dict[str, str], _: str) -> Call:
        method = self.dice.choice(["StartSession", "EndSession"])
        return Call("ConversationService", method, self._place(asker, door), door)

    def _erase(self, door: str, asker: dict[str, str], _: str) -> Call:
        if self.dice.random() < 0.2:
            request = {"user_id": self.dice.choice(USERS), "dry_run": self.dice.random() < 0.5}
            return Call("AdminService", "EraseUser", request)
        request = {**self._place(asker, door), "with_memories": self.dice.random() < 0.5}
        return Call("ConversationService", "DeleteThread", request, door)

    def _job(self, _: str, __: dict[str, str], ___: str) -> Call:
        job = self.dice.choice(["extraction", "extraction", "consolidation", "decay", "gc"])
        return Call("JobService", "RunJob", {"job": job})

    def _wrong(self, door: str, asker: dict[str, str], _: str) -> Call:
        """What is refused: too long, empty, of somebody else, with a field that does not fit."""
        bad: dict[str, Any] = self.dice.choice(
            (
                {"content": ""}, {"content": "x" * 9000}, {"content": "ok", "confidence": 2.0},
                {"content": "ok", "expires_days": -1}, {"content": "ok", "tags": ["t" * 65]}, {"content": "ok", "key": " k "},
                {"content": "ok", "shared": True, "chat_id": ""}, {"content": "ok", "user_id": "mallory"},
                {"content": "ok", "kind": 77}, {"content": "ok", "expire_time": "2001-01-01T00:00:00Z"},
            )
        )  # fmt: skip
        return Call("MemoryService", "AddMemory", {**asker, **bad}, door)

    def _admin(self, door: str, _: dict[str, str], __: str) -> Call:
        method = self.dice.choice(["RunGc", "RunDecay", "RunEnrichment"])
        return Call("AdminService", method, {"dry_run": self.dice.random() < 0.5}, door)

    def saw(self, call: Call, answer: Any) -> None:
        """Learn the ids of an answer."""
        asker = {name: value for name, value in call.request.items() if name in {"user_id", "chat_id"}}
        for key, value in _members(answer):
            is_id = key == "id" and isinstance(value, str) and value.startswith("#")
            if is_id and call.service in {"MemoryService", "ContextService", "EntityService"}:
                known = self.entities if call.service == "EntityService" else self.memories
                known.append((call.door, asker, value))
            if key == "next_page_token" and value:
                self.pages.append((call, value))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)
