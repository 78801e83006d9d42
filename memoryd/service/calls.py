"""What every RPC shares: an id, a log line without content, one mapping of errors, and safety from cancellation."""

from __future__ import annotations

import asyncio
import secrets
import time
import traceback
from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc
import structlog

from memoryd.errors import InternalError, MemorydError
from memoryd.service.status import STATUS_KEY, status_of

__all__ = ["EMBEDDING_KEY", "answer", "note_embedding"]

T = TypeVar("T")
EMBEDDING_KEY = "memoryd-embedding-us"  # trailing metadata: microseconds that this call waited for its embedding

log = structlog.get_logger("memoryd.rpc")


async def answer(name: str, context: Any, work: Awaitable[T]) -> T:
    """Await the work of an RPC, log it once, and turn what it raises into a status."""
    call = secrets.token_hex(6)
    began = time.perf_counter()
    try:
        result = await work
    except MemorydError as error:
        log.info(name, call=call, code=error.code, reason=error.reason, field=error.field, ms=_ms(began))
        await _abort(context, error)
        raise AssertionError("unreachable: abort raises") from None
    except asyncio.CancelledError:
        log.info(name, call=call, code="CANCELLED", ms=_ms(began))
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, the caller gets one code and the log one line
        # no message and no locals, which may hold what the caller said
        trace = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
        log.error(  # noqa: TRY400  see above
            name, call=call, code="INTERNAL", error=type(error).__name__, trace=trace, ms=_ms(began)
        )
        await _abort(context, InternalError(f"an internal error occurred; report it with the id {call}"))
        raise AssertionError("unreachable: abort raises") from None
    log.debug(name, call=call, code="OK", ms=_ms(began))
    return result


def _ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 2)


async def _abort(context: Any, error: MemorydError) -> None:
    code, message, details = status_of(error)
    await context.abort(code, message, ((STATUS_KEY, details),))


def note_embedding(context: grpc.aio.ServicerContext[Any, Any], seconds: float) -> None:
    """Report how long the call waited for its embedding."""
    context.set_trailing_metadata(((EMBEDDING_KEY, str(round(seconds * 1e6))),))
