"""Which host a request names: another one is a name that was pointed here, to let a web page call this server."""

from __future__ import annotations

__all__ = ["LOOPBACK", "host_of", "in_address", "names_of"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def in_address(host: str) -> str:
    """Return a host as an address names it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def names_of(host: str) -> frozenset[str]:
    """Return what requests may call a server that listens on a host; "": on a Unix socket."""
    return LOOPBACK | {in_address(host)} if host else LOOPBACK


def host_of(header: str) -> tuple[str, str]:
    """Return the name and the port of a Host header, or of an origin without its scheme; no port: ""."""
    if header.endswith("]"):
        return header.lower(), ""
    name, colon, port = header.rpartition(":")
    return (name.lower(), port) if colon else (port.lower(), "")
