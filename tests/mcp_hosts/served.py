"""The application of `memory-mcp http` with a token put into each request, for a host that cannot send one."""

import sys

import uvicorn
from memory_mcp.callers import ByToken
from memory_mcp.http import application


def main(endpoint: str, token: str, port: str) -> None:
    """Serve on a port of loopback until the process is told to end."""
    app = application(ByToken(endpoint))
    shown = (b"authorization", f"Bearer {token}".encode())

    async def with_token(scope, receive, send):
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], shown]}
        await app(scope, receive, send)

    uvicorn.run(with_token, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
