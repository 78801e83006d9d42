"""
The tools: what each is called, what it takes, what it may do, and the call of the daemon that it makes.

A tool is listed only to who has the permission of its call; the daemon decides all the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mcp_types as types
from memory_client import AsyncMemoryClient
from pydantic import BaseModel

from memory_mcp import answers, arguments
from memory_mcp.arguments import time_of
from memoryd.model.conversation import Role
from memoryd.model.grant import Permission
from memoryd.model.memory import Kind
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter

__all__ = ["TOOLS", "Tool"]

PAGE = 50
RECENT_TOKENS = 6000  # of the daemon's counter; a model's window holds more than this

READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
APPENDS = ADDS.model_copy(update={"idempotent_hint": False})
DESTROYS = ADDS.model_copy(update={"destructive_hint": True})


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    needs: Permission | None
    """Without it the tool is not listed; None: anyone may."""
    annotations: types.ToolAnnotations
    takes: type[arguments.Arguments]
    answers: type[BaseModel]
    run: Callable[[AsyncMemoryClient, Any], Awaitable[BaseModel]]

    @cached_property
    def shown(self) -> types.Tool:
        """The tool as it is listed."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=_schema(self.takes, mode="validation"),
            output_schema=_schema(self.answers, mode="serialization"),
            annotations=self.annotations,
        )


def _schema(model: type[BaseModel], *, mode: Any) -> dict[str, Any]:
    """Return the JSON Schema of a model, without the titles that Pydantic makes of its names."""
    schema = model.model_json_schema(mode=mode)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        for field in part.get("properties", {}).values():
            field.pop("title", None)
    return schema


async def _remember(client: AsyncMemoryClient, asked: arguments.Remember) -> answers.Remembered:
    result = await client.add(
        asked.text, subjects=asked.about, kind=Kind(asked.kind), shared=asked.shared, event_time=time_of(asked.when)
    )
    return answers.Remembered.of(result)


async def _search(client: AsyncMemoryClient, asked: arguments.Search) -> answers.SearchAnswer:
    wanted = Filter(
        subjects=(asked.about,) if asked.about else (),
        event_time_from=time_of(asked.since),
        event_time_to=time_of(asked.until),
    )
    result = await client.search(asked.query, limit=asked.limit, filter=wanted)
    return answers.SearchAnswer(hits=[answers.Found.hit(hit) for hit in result.hits])


async def _list(client: AsyncMemoryClient, asked: arguments.ListMemories) -> answers.ListAnswer:
    page = await client.page(page_size=PAGE, page_token=asked.cursor)
    return answers.ListAnswer(
        memories=[answers.Stored.of(memory) for memory in page.memories], next_cursor=page.next_page_token
    )


async def _correct(client: AsyncMemoryClient, asked: arguments.Correct) -> answers.Remembered:
    return answers.Remembered.of(await client.correct(asked.id, asked.text))


async def _confirm(client: AsyncMemoryClient, asked: arguments.Named) -> answers.ConfirmAnswer:
    return answers.ConfirmAnswer.of(await client.confirm(asked.id))


async def _forget(client: AsyncMemoryClient, asked: arguments.Named) -> answers.ForgetAnswer:
    return answers.ForgetAnswer.of(await client.delete(asked.id))


async def _forget_person(client: AsyncMemoryClient, asked: arguments.ForgetPerson) -> answers.ForgetPersonAnswer:
    return answers.ForgetPersonAnswer.of(await client.forget_person(asked.name, dry_run=asked.dry_run))


async def _about(client: AsyncMemoryClient, asked: arguments.About) -> answers.AboutAnswer:
    return answers.AboutAnswer.of(await client.entity(asked.name))


async def _context(client: AsyncMemoryClient, asked: arguments.Context) -> answers.ContextAnswer:
    context = await client.context(asked.prompt, thread_id=asked.thread, shared=asked.shared)
    return answers.ContextAnswer.of(context)


async def _log(client: AsyncMemoryClient, asked: arguments.Log) -> answers.LogAnswer:
    draft = MessageDraft(role=Role(asked.role), content=asked.text, input_source="mcp")
    return answers.LogAnswer.of(await client.append(asked.thread, draft, shared=asked.shared))


async def _recent(client: AsyncMemoryClient, asked: arguments.Recent) -> answers.RecentAnswer:
    messages = await client.conversation(asked.thread, shared=asked.shared).recent(max_tokens=RECENT_TOKENS)
    return answers.RecentAnswer(messages=[answers.Said.of(message) for message in messages])


async def _whoami(client: AsyncMemoryClient, asked: arguments.Nothing) -> answers.WhoAmIAnswer:
    del asked
    return answers.WhoAmIAnswer.of(await client.whoami())


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            name="remember",
            title="Remember a statement",
            description="Store one statement that lasts: a fact, a preference, a decision. What is known already is"
            " reinforced, what it contradicts is superseded; credentials are rejected.",
            needs=Permission.ADD,
            annotations=ADDS,
            takes=arguments.Remember,
            answers=answers.Remembered,
            run=_remember,
        ),
        Tool(
            name="search",
            title="Search what is remembered",
            description="Find the memories that answer a question, best first. Search before you answer anything about"
            " the user, people they know, or earlier decisions.",
            needs=Permission.SEARCH,
            annotations=READS,
            takes=arguments.Search,
            answers=answers.SearchAnswer,
            run=_search,
        ),
        Tool(
            name="list_memories",
            title="List memories",
            description=f"List all memories, newest first, {PAGE} a page.",
            needs=Permission.LIST,
            annotations=READS,
            takes=arguments.ListMemories,
            answers=answers.ListAnswer,
            run=_list,
        ),
        Tool(
            name="correct",
            title="Correct a memory",
            description="Replace what a memory says by what is right. The memory gets a new id; the former text stays"
            " in its history.",
            needs=Permission.CORRECT,
            annotations=DESTROYS,
            takes=arguments.Correct,
            answers=answers.Remembered,
            run=_correct,
        ),
        Tool(
            name="confirm",
            title="Confirm a memory",
            description="Say that a memory is right, where others contest it or it could fade. Use it only if the user"
            " says so.",
            needs=Permission.CORRECT,
            annotations=ADDS,
            takes=arguments.Named,
            answers=answers.ConfirmAnswer,
            run=_confirm,
        ),
        Tool(
            name="forget",
            title="Forget a memory",
            description="Delete one memory. For some days the user can restore it.",
            needs=Permission.DELETE,
            annotations=DESTROYS,
            takes=arguments.Named,
            answers=answers.ForgetAnswer,
            run=_forget,
        ),
        Tool(
            name="forget_person",
            title="Forget a person for good",
            description="Erase all that is about a person, for good. Call it with dry_run first, show the user what"
            " would go, and erase only when the user agrees.",
            needs=Permission.DELETE,
            annotations=DESTROYS,
            takes=arguments.ForgetPerson,
            answers=answers.ForgetPersonAnswer,
            run=_forget_person,
        ),
        Tool(
            name="about",
            title="Tell about a person or thing",
            description="Who or what a name is, how they are related to the user, and the memories that name them.",
            needs=Permission.GET,
            annotations=READS,
            takes=arguments.About,
            answers=answers.AboutAnswer,
            run=_about,
        ),
        Tool(
            name="context",
            title="Build the context of a prompt",
            description="One block of text with what is worth knowing before an answer: the profile, people, memories"
            " and, with a thread, its last messages.",
            needs=Permission.CONTEXT,
            annotations=READS,
            takes=arguments.Context,
            answers=answers.ContextAnswer,
            run=_context,
        ),
        Tool(
            name="log",
            title="Log a message",
            description="Append a message to a conversation, word for word. What lasts in it is learnt by itself.",
            needs=Permission.APPEND,
            annotations=APPENDS,
            takes=arguments.Log,
            answers=answers.LogAnswer,
            run=_log,
        ),
        Tool(
            name="recent",
            title="Read the last messages",
            description="The last messages of a conversation, in order; none of a conversation that is not known.",
            needs=Permission.READ_MESSAGES,
            annotations=READS,
            takes=arguments.Recent,
            answers=answers.RecentAnswer,
            run=_recent,
        ),
        Tool(
            name="whoami",
            title="Tell whose memory it is",
            description="The user, chat and agent whose memory this is, and what is permitted.",
            needs=None,
            annotations=READS,
            takes=arguments.Nothing,
            answers=answers.WhoAmIAnswer,
            run=_whoami,
        ),
    )
}
