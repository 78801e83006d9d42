"""
The way of a call: authenticate, authorise method and scope, charge the quota, validate, run, write it down, answer.

There is one gate a listener, and all of them lead to the same methods. An exception anywhere becomes one status, one
log line and one line of the audit log; none says what the call was about.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import grpc
import structlog

from memoryd.audit.log import AuditLog
from memoryd.domain.completion import run_to_completion
from memoryd.domain.retrieval.withheld import may_read
from memoryd.errors import (
    AmbiguousName,
    EntityNotFound,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    MemorydError,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    in_part,
)
from memoryd.identity.authentication import Authenticator, Session
from memoryd.identity.grants import Grants
from memoryd.model.call_context import NO_TRACES, CallContext, Traces, in_call, when_completed
from memoryd.model.caller import Caller
from memoryd.model.grant import Door, Permission
from memoryd.model.measures import NO_MEASURES, Event, Level, Measures, Quantity
from memoryd.model.scope import EVERY_AGENT, Owner
from memoryd.model.traces import TRACEPARENT, TraceParent, read_traceparent
from memoryd.service.methods import IDENTITY, Access, Method
from memoryd.service.status import STATUS_KEY, status_of
from memoryd.turns import are_exhausted

__all__ = ["EMBEDDING_KEY", "Call", "Gate"]

EMBEDDING_KEY = "memoryd-embedding-us"  # trailing metadata: microseconds that this call waited for its embedding

REFUSAL_DELAY_S = 0.05  # a refused call waits, so that refusals cannot fill the event loop
RECEIVE_S = 10.0  # so long may a request take to arrive
_Serve = Callable[[AsyncIterator[bytes], Any], Awaitable[bytes]]

log = structlog.get_logger("memoryd.rpc")


@dataclass(slots=True)
class Call:
    """What a method is told of a call besides its request."""

    session: Session
    identity: tuple[str, str, str]
    """Agent, user and chat in effect; the last two may be empty."""
    now: datetime
    call_context: CallContext
    context: Any

    @property
    def caller(self) -> Caller:
        """Who asks; IdentityMissing if no one is named."""
        return self.session.caller(*self.identity)

    def acting_for(self, owner: Owner) -> Caller:
        """Return the host, acting for an owner; the audit log names it."""
        scope = owner.scope
        self.call_context.agent_id, self.call_context.user_id = owner.agent_id, scope.user_id or ""
        self.call_context.chat_id = scope.chat_id or ""
        return self.session.caller(owner.agent_id, scope.user_id or "", scope.chat_id or "")

    @property
    def is_of_no_one(self) -> bool:
        """Whether the host asks, and names neither user nor chat."""
        return self.session.grant is None and not any(self.identity[1:])

    @property
    def may_read(self) -> bool:
        """Whether the caller may read memories, and who is named in them."""
        return may_read(self.session.permissions)

    def touched(self, ids: Sequence[str]) -> None:
        """Have the audit log name these memories or grants."""
        self.call_context.ids.extend(ids)

    def note_embedding(self, seconds: float) -> None:
        """Tell the host how long the call waited for its embedding; a sandbox could learn from it what was asked."""
        if self.session.door is Door.ADMIN:
            self.context.set_trailing_metadata(((EMBEDDING_KEY, str(round(seconds * 1e6))),))


class Gate(grpc.GenericRpcHandler):
    """Serves methods to the callers of one authenticator."""

    def __init__(  # noqa: PLR0913  the wiring of all parts
        self,
        authenticator: Authenticator,
        methods: Mapping[str, Method],
        grants: Grants,
        audit: AuditLog | None,
        clock: Callable[[], datetime],
        random_bytes: Callable[[int], bytes],
        *,
        most_calls: int,
        measures: Measures = NO_MEASURES,
        traces: Traces = NO_TRACES,
    ) -> None:
        """
        Serve `methods`, by path; those for the host exist on the admin socket alone.

        Of one grant, at most so many calls are under way at once.
        """
        self._most_calls = most_calls
        self._authenticator = authenticator
        self._methods = methods
        self._grants = grants
        self._audit = audit
        self._clock = clock
        self._random_bytes, self._measures, self._traces = random_bytes, measures, traces
        self._handlers: dict[str, Any] = {}

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a path; on the admin socket, of one that is not memoryd's, None."""
        path = handler_call_details.method
        handler = self._handlers.get(path)
        if handler is None:
            if self._authenticator.door is Door.ADMIN and not path.startswith("/memoryd."):
                return None
            method = self._methods.get(path)
            known = method is not None and (
                method.rule.needs is not Access.HOST or self._authenticator.door is Door.ADMIN
            )
            serve = self._server_of(method) if method is not None and known else self._refuser_of(method)
            # The message is received in the call, so that who sends it is known before, and need not be waited for.
            handler = grpc.stream_unary_rpc_method_handler(serve)
            if method is not None:  # paths that are made up are not remembered
                self._handlers[path] = handler
        return handler

    def _refuser_of(self, method: Method | None) -> _Serve:
        name = method.name if method is not None else "unknown"

        async def refuse(_: AsyncIterator[bytes], context: Any) -> bytes:
            call_context = self._trail(name)
            log.debug(
                name,
                call=call_context.call,
                door=call_context.door,
                grant_id=call_context.grant_id,
                code="UNIMPLEMENTED",
            )
            self._note(call_context, "UNIMPLEMENTED")
            if self._authenticator.door is not Door.ADMIN:
                await asyncio.sleep(REFUSAL_DELAY_S)
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this door does not have that method")
            raise AssertionError("unreachable: abort raises")

        return refuse

    def _server_of(self, method: Method) -> _Serve:
        async def serve(messages: AsyncIterator[bytes], context: Any) -> bytes:
            call_context = self._trail(method.name)
            call_context.trace = self._trace_of(context)
            self._measures.change(Level.CALLS, 1, call_context.door)
            try:
                with in_call(call_context):
                    outcome = await self._outcome(method, messages, context, call_context)
            finally:
                self._measures.change(Level.CALLS, -1, call_context.door)
            if isinstance(outcome, bytes):
                return outcome
            del messages  # what aborts a call keeps this frame until the collector comes
            if _is_refusal(outcome) and self._authenticator.door is not Door.ADMIN:
                await asyncio.sleep(REFUSAL_DELAY_S)
            return await _abort(context, outcome)

        return serve

    async def _outcome(
        self, method: Method, messages: AsyncIterator[bytes], context: Any, call_context: CallContext
    ) -> bytes | MemorydError:
        """Return the answer or what went wrong, logged and audited; nothing of the request is held any longer."""
        try:
            response = await self._answer(method, messages, context, call_context)
            self._note(call_context, "OK")
        except MemorydError as error:
            quiet = _is_refusal(error) and self._authenticator.door is not Door.ADMIN
            told = log.debug if quiet else log.info  # the audit log has it, and counts those that repeat
            told(call_context.rpc, **_line(call_context), code=error.code, reason=error.reason, field=error.field)
            self._note(call_context, error.code, error.reason, error.field)
            return _bare(error)
        except asyncio.CancelledError:
            log.info(call_context.rpc, **_line(call_context), code="CANCELLED")
            self._note(call_context, "CANCELLED")
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the caller gets one code and the log one line
            if are_exhausted(error):
                line = _line(call_context)
                log.error(call_context.rpc, **line, code="RESOURCE_EXHAUSTED", error=type(error).__name__)  # noqa: TRY400
                self._note(call_context, "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")
                return LimitExceeded("the daemon has no memory or no thread left for this; try again", limit="memory")
            # no message and no locals, which may hold what the caller said
            trace = [
                f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
            ]
            log.error(  # noqa: TRY400  see above
                call_context.rpc, **_line(call_context), code="INTERNAL", error=type(error).__name__, trace=trace
            )
            self._note(call_context, "INTERNAL", "INTERNAL")
            return InternalError(f"an internal error occurred; report it with the id {call_context.call}")
        log.debug(call_context.rpc, **_line(call_context), code="OK")
        return response.SerializeToString()  # type: ignore[no-any-return]  # a protobuf message

    async def _answer(
        self, method: Method, messages: AsyncIterator[bytes], context: Any, call_context: CallContext
    ) -> Any:
        if self._authenticator.door is Door.TCP:
            call_context.peer = context.peer()
        await self._grants.refresh()
        session = self._authenticator.authenticate(context.invocation_metadata(), call_context.time, call_context)
        grant = session.grant
        call_context.token_id = session.token_id
        if grant is not None:
            call_context.grant_id, call_context.agent_id, call_context.user_id = grant.id, grant.agent_id, grant.user_id
        needs = method.rule.needs
        if isinstance(needs, Permission):
            session.require(needs)
        elif needs is Access.HOST and grant is not None:
            raise PermissionDenied("a token cannot do what is for the host; leave it out on the admin socket")
        if grant is None:
            return await self._carry_out(method, session, await _received(messages), context, call_context)
        self._grants.enter(grant.id, self._most_calls)
        try:
            return await self._carry_out(method, session, await _received(messages), context, call_context)
        finally:
            when_completed(call_context.changes, lambda: self._grants.leave(grant.id))

    async def _carry_out(
        self, method: Method, session: Session, raw: bytes, context: Any, call_context: CallContext
    ) -> Any:
        """Authorise the scope, charge the quota, validate, run."""
        if session.grant is not None:
            self._grants.check(session.grant.id, self._clock())  # the request may have taken its time to arrive
        request, malformed = None, None
        try:
            request = method.parse(raw)
        except MemorydError as error:
            malformed = error  # said once the call is charged for
        identity = ("", "", "")
        if request is not None and method.names_caller:
            identity = _authorise(method, request, session)
            call_context.agent_id, call_context.user_id, call_context.chat_id = identity
        if session.grant is not None:
            writes = method.weight(request) if request is not None else 0
            await self._grants.charge(session.grant, writes, call_context.time)
        if malformed is not None:
            raise malformed
        call_context.dry_run, call_context.purge = (getattr(request, flag, False) for flag in ("dry_run", "purge"))
        if method.writes and self._audit is not None:
            self._audit.check_writable()
        call = Call(session, identity, call_context.time, call_context, context)
        try:
            work = method.run(request, call)
            return await (run_to_completion(work) if method.writes else work)
        except (EntityNotFound, AmbiguousName) as error:
            raise (error if call.may_read else error.without_names()) from None

    def _trail(self, rpc: str) -> CallContext:
        authenticator = self._authenticator
        return CallContext(
            time=self._clock(),
            call=self._random_bytes(6).hex(),
            rpc=rpc,
            door=authenticator.door.value,
            listener=authenticator.grant_id,
            grant_id=authenticator.grant_id,
            began_s=time.perf_counter(),
        )

    def _trace_of(self, context: Any) -> TraceParent | None:
        """Return the trace that a call says it belongs to; only the host has calls sampled."""
        told = next((value for name, value in context.invocation_metadata() or () if name == TRACEPARENT), "")
        trace = read_traceparent(told) if isinstance(told, str) and told else None
        if trace is None or self._authenticator.door in {Door.ADMIN, Door.SHARED}:
            return trace
        return replace(trace, sampled=False)

    def _note(self, call_context: CallContext, outcome: str, reason: str = "", field: str = "") -> None:
        took_s = time.perf_counter() - call_context.began_s
        self._measures.measure(Quantity.RPC, took_s, call_context.rpc, outcome, call_context.door)
        self._traces.record(call_context, outcome, took_s)
        if reason:
            self._measures.count(Event.REFUSED, reason)
        if self._audit is not None:
            self._audit.note(call_context, outcome, reason, field)


def _bare(error: MemorydError) -> MemorydError:
    """Return an error without what brought it about, whose frames hold the request and the call, in circles."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _is_refusal(error: MemorydError) -> bool:
    return isinstance(error, Unauthenticated | PermissionDenied | LimitExceeded)


async def _received(messages: AsyncIterator[bytes]) -> bytes:
    """Return the message of a call; InvalidArgument if it has none, Unavailable if it drips or the host is too busy."""
    try:
        async with asyncio.timeout(RECEIVE_S), aclosing(aiter(messages)) as arriving:  # type: ignore[type-var]  # it is
            async for raw in arriving:
                return raw
    except TimeoutError:
        raise Unavailable(f"the request did not arrive within {RECEIVE_S:.0f} s") from None
    raise InvalidArgument("the call has no request")


def _authorise(method: Method, request: Any, session: Session) -> tuple[str, str, str]:
    """Return the identity in effect; ScopeMismatch, or InvalidArgument where the items of a batch name another."""
    identity = session.identity(request.agent_id, request.user_id, request.chat_id)
    if identity[0] == EVERY_AGENT and (session.grant is not None or not method.rule.takes_every_agent):
        raise InvalidArgument("agent_id '*' stands for every agent, which only lists may name", field="agent_id")
    if not method.items or method.rule.items:
        return identity
    for n, item in enumerate(getattr(request, method.items)):
        if not (item.agent_id or item.user_id or item.chat_id):
            continue
        with in_part(f"{method.items}[{n}]"):
            session.identity(item.agent_id, item.user_id, item.chat_id)
            for name, effective in zip(IDENTITY, identity, strict=True):
                value = getattr(item, name)
                if value and value != effective:
                    raise InvalidArgument(
                        f"{name} differs from the batch's; leave it out, or send batches apart", field=name
                    )
    return identity


def _line(call_context: CallContext) -> dict[str, Any]:
    """Return what a line of the log says of a call besides its code."""
    trace = {} if call_context.trace is None else {"trace_id": call_context.trace.trace_id}
    return {
        "call": call_context.call,
        **trace,
        "door": call_context.door,
        "grant_id": call_context.grant_id,
        "ms": round((time.perf_counter() - call_context.began_s) * 1000, 2),
    }


async def _abort(context: Any, error: MemorydError) -> bytes:
    code, message, details = status_of(error)
    await context.abort(code, message, ((STATUS_KEY, details),))
    raise AssertionError("unreachable: abort raises")
