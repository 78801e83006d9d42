"""Talking to systemd: readiness, and a watchdog that is fed by a real self-check."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping

import structlog

__all__ = ["feed_watchdog", "notify", "tell_of_start", "watchdog_interval_s"]

EXTEND_S, EXTEND_EVERY_S = 30.0, 10.0

log = structlog.get_logger("memoryd.supervision")


def notify(env: Mapping[str, str], message: str) -> None:
    """Send a line such as READY=1 to the supervisor, where there is one; see sd_notify(3)."""
    address = env.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.sendto(message.encode(), address)


def watchdog_interval_s(env: Mapping[str, str]) -> float | None:
    """Return half of the time after which systemd would kill this process; None where it would not."""
    if not env.get("WATCHDOG_USEC") or env.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(env["WATCHDOG_USEC"]) / 2e6


async def feed_watchdog(env: Mapping[str, str], interval_s: float, check: Callable[[], Awaitable[None]]) -> None:
    """Notify the supervisor as long as the self-check passes; a daemon that cannot serve is restarted."""
    while True:
        try:
            await check()
            notify(env, "WATCHDOG=1")
        except Exception as error:  # noqa: BLE001  whatever it is, the watchdog must not be fed
            log.error("self_check_failed", error=type(error).__name__)  # noqa: TRY400  a trace may hold content
        await asyncio.sleep(interval_s)


async def tell_of_start(env: Mapping[str, str], progress: Callable[[], str]) -> None:
    """Ask the supervisor again and again for more time for a start, and tell it what the start is at."""
    while True:
        notify(env, f"EXTEND_TIMEOUT_USEC={round(EXTEND_S * 1e6)}\nSTATUS={progress()}")
        await asyncio.sleep(EXTEND_EVERY_S)
