"""What the tests of one subject share."""

from __future__ import annotations


async def told(memory, *texts, **more):
    return [(await memory.add(text, **more)).memory for text in texts]
