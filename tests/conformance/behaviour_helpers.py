"""What the tests of one subject share."""

from __future__ import annotations


def texts(found):
    return [hit.memory.content for hit in found.hits]


async def listed(memory, **more):
    return [m.content for m in (await memory.page(page_size=1000, **more)).memories]
