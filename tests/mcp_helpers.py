"""What the tests of memory-mcp share: a server on stdio or over HTTP, and the SDK's own client at it."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager

import httpx2 as httpx
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.doors import socket_of
from tests.forking import begin_command
from tests.support import BIN, PATIENCE_S

SURROUNDINGS = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


@contextmanager
def http_server(endpoint: str, listen: str = "127.0.0.1:0", **env: str):
    command = [BIN / "memory-mcp", "http", "--endpoint", endpoint, "--listen", listen]
    values = {**SURROUNDINGS, **env}
    with begin_command(command, stderr=subprocess.PIPE, text=True, env=values) as process:
        said = process.stderr.readline()
        try:
            yield said.partition("memory-mcp: ")[2].strip(), process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@asynccontextmanager
async def on_stdio(endpoint: str, *words: str, era: str = "auto", **env: str):
    values = {**SURROUNDINGS, "MEMORY_ENDPOINT": endpoint, **env}
    parameters = StdioServerParameters(command=str(BIN / "memory-mcp"), args=list(words), env=values)
    async with Client(stdio_client(parameters), mode=era) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, token: str, era: str = "auto"):
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as sender:
        async with Client(streamable_http_client(url, http_client=sender), mode=era) as client:
            yield client


@asynccontextmanager
async def a_caller(world, served, transport: str, era: str, *allow: str, **grant):
    if transport == "stdio":
        async with on_stdio(socket_of(world.sandbox(*allow, **grant)), era=era) as client:
            yield client
    else:
        async with over_http(served, world.token(*allow, **grant), era) as client:
            yield client


def text_of(result) -> str:
    return result.content[0].text


async def told(client, tool: str, **given):
    """What a tool answers that succeeds; its text is the same JSON, but for a context."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, text_of(result)
    if tool != "context":
        assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def refused(client, tool: str, **given) -> str:
    result = await client.call_tool(tool, given)
    assert result.is_error, result.structured_content
    return text_of(result)
