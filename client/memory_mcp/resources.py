"""The resources: what a host may attach to a conversation without a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import mcp_types as types
from memory_client import AsyncMemoryClient
from memory_client.json_text import as_json, readable

from memoryd.model.grant import Permission

__all__ = ["RESOURCES", "Resource"]

MOST_PEOPLE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    needs: Permission
    read: Callable[[AsyncMemoryClient], Awaitable[str]]

    @property
    def shown(self) -> types.Resource:
        """The resource as it is listed."""
        return types.Resource(
            uri=self.uri, name=self.name, title=self.title, description=self.description, mime_type=self.mime_type
        )


async def _people(client: AsyncMemoryClient) -> str:
    page = await client.people(page_size=MOST_PEOPLE)
    people = [
        {
            "id": person.id,
            "name": person.name,
            "aliases": person.aliases,
            "relations": person.relations,
            "summary": person.summary,
        }
        for person in page.people
    ]
    return as_json({"people": people, "more": bool(page.next_page_token)}, indent=None)


async def _working_memory(client: AsyncMemoryClient) -> str:
    return readable((await client.working_memory()).text)


RESOURCES = {
    resource.uri: resource
    for resource in (
        Resource(
            uri="memory://people",
            name="people",
            title="People",
            description=f"the people that memories name, those named most often first, at most {MOST_PEOPLE}",
            mime_type="application/json",
            needs=Permission.LIST,
            read=_people,
        ),
        Resource(
            uri="memory://working-memory",
            name="working-memory",
            title="Working memory",
            description="the small text that the agent keeps in mind",
            mime_type="text/plain",
            needs=Permission.READ_MESSAGES,
            read=_working_memory,
        ),
    )
}
