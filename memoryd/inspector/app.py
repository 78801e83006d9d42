"""The application: every request is looked at before a page sees it, and every answer says what a browser may do."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from jinja2 import Environment
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Route

from memoryd.errors import (
    Conflict,
    InvalidArgument,
    LimitExceeded,
    MemorydError,
    NotFound,
    TrustTooLow,
    Unavailable,
)
from memoryd.inspector.entry import NOT_OURS, Entry
from memoryd.inspector.pages import ROUTES
from memoryd.inspector.sources import Sources
from memoryd.inspector.view import FOLDER, LABELS, OWNER_FIELDS, PAGES, Session, View, environment, in_words_of
from memoryd.web.bodies import Refused

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

__all__ = ["application"]

log = logging.getLogger("memoryd.inspector")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send the origin null with each form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OF_ONE = frozenset(("GET", path) for path, _, shows_one in PAGES if shows_one)
STATIC = {"style.css": "text/css", "keys.js": "text/javascript"}
Page = Callable[[View], Awaitable[Response]]


def application(connect: Callable[[], AsyncMemoryClient], entry: Entry, sources: Sources) -> Starlette:
    """Return the pages over a client of the admin socket, which `connect` makes once the event loop runs."""
    inspector = _Inspector(entry, sources)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with connect() as client, sources.figures.watching(client):
            inspector.client = client
            yield

    base = entry.base
    routes = [
        Route("/enter/{link}", inspector.enter),
        Route("/favicon.ico", inspector.no_icon),
        Route("/", inspector.outside),
        Route(base, inspector.to_overview),
        Route(f"{base}/static/{{name}}", inspector.static),
        Route(f"{base}/refused/{{key}}", inspector.endpoint(_kept, of_one=False)),
        *(
            Route(f"{base}/{path}", inspector.endpoint(page, of_one=(method, path) in OF_ONE), methods=[method])
            for method, path, page in ROUTES
        ),
    ]  # fmt: skip
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: inspector.unknown})
    app.router.redirect_slashes = False  # it would answer before a host is looked at
    inspector.routes = routes
    return app


class _Inspector:
    """What all requests share."""

    client: AsyncMemoryClient
    routes: Sequence[Route]

    def __init__(self, entry: Entry, sources: Sources) -> None:
        self._entry = entry
        self._sources = sources
        self._session = Session()
        self._templates: Environment = environment(sources.now)

    async def enter(self, request: Request) -> Response:
        """Let in the browser that brings the link first."""
        entry = self._entry
        if not entry.is_ours(request.headers.get("host", "")):
            return _refuse(NOT_OURS)
        if request.method != "GET":  # whoever only looks at the link does not use it up
            return _refuse("open the link in a browser")
        cookie = entry.use(request.path_params["link"])
        if not cookie:
            return _refuse("this link was used; run memoryd inspect again for another one")
        answer = RedirectResponse(f"{entry.base}/", 303, headers=HEADERS)
        # samesite="strict" would not be sent after a link on a page of another site
        answer.set_cookie(entry.cookie_name, cookie, path=entry.base, httponly=True, samesite="lax")
        return answer

    async def no_icon(self, _request: Request) -> Response:
        """Tell browsers, which always ask, that there is no icon."""
        return Response(status_code=204, headers=HEADERS)

    async def outside(self, _request: Request) -> Response:
        """Tell who comes by without the link what to do."""
        return _refuse("run memoryd inspect, and open the link that it prints")

    async def to_overview(self, _request: Request) -> Response:
        """Lead on to the overview."""
        return RedirectResponse(f"{self._entry.base}/", 307, headers=HEADERS)

    async def static(self, request: Request) -> Response:
        """Give the style sheet and the script."""
        refusal = self._entry.refusal(request)
        name = request.path_params["name"]
        if refusal or name not in STATIC:
            return _refuse(refusal or "there is no such file")
        return FileResponse(FOLDER / "static" / name, headers=HEADERS, media_type=STATIC[name])

    def endpoint(self, page: Page, *, of_one: bool) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers the requests to a page; `of_one`: it shows one owner, who is chosen first."""

        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            refusal = self._entry.refusal(request)
            if refusal:
                return _refuse(refusal)
            try:
                made = await self._answer(request, page, of_one=of_one)
            except Refused as refused:
                made = refused.response
            except Exception:
                log.exception("a page failed")
                made = PlainTextResponse("this page has failed; the terminal of memoryd inspect says why\n", 500)
            made.headers.update(HEADERS)
            made.headers["Server-Timing"] = f"page;dur={(time.perf_counter() - began) * 1e3:.1f}"
            return made

        return answer

    def _view(self, request: Request) -> View:
        return View(
            request,
            client=self.client,
            entry=self._entry,
            session=self._session,
            sources=self._sources,
            templates=self._templates,
        )

    async def _answer(self, request: Request, page: Page, *, of_one: bool) -> Response:
        view = self._view(request)
        self._sources.figures.note_look()
        try:
            if request.method == "POST":
                await view.read_form()
            made = view.page("choose.html", message="") if of_one and not view.whose.is_known else await page(view)
        except MemorydError as error:
            made = _fault(view, error)
        is_refused = view.is_form and made.status_code >= 400  # noqa: PLR2004
        return view.keep_refused(made) if is_refused else made

    async def unknown(self, request: Request, error: Exception) -> Response:
        """Answer a request for what is not there."""
        refusal = self._entry.refusal(request)
        code = getattr(error, "status_code", 404)
        if refusal:
            return _refuse(refusal)
        if code == 405 and request.method == "GET" and (shown := self._shown_above(request.url.path)):  # noqa: PLR2004
            query = request.url.query and f"?{request.url.query}"
            return RedirectResponse(f"{shown}{query}", 303, headers=HEADERS)
        answer = self._view(request).page("fault.html", code, title="Not found", message="There is no such page.")
        answer.headers.update(HEADERS)
        return answer

    def _shown_above(self, path: str) -> str:
        """Return the nearest page above a path that only takes forms, for whoever asks for it anew; empty: none."""
        while path := path.rpartition("/")[0].removesuffix("/"):
            scope = {"type": "http", "method": "GET", "path": path}
            if any(route.matches(scope)[0] is Match.FULL for route in self.routes):
                return path
        return ""


async def _kept(view: View) -> Response:
    """Show again the page that has refused a form."""
    body, status = view.session.refused.get(view.part("key"), (b"", 0))
    if not status:
        return view.page("fault.html", 404, title="Not found", message="That form is not kept any more.")
    return HTMLResponse(body, status)


KINDS: tuple[tuple[tuple[type[MemorydError], ...], int, str], ...] = (
    ((Unavailable,), 503, "The daemon is away"),
    ((NotFound,), 404, "Not found"),
    ((InvalidArgument, LimitExceeded), 400, "That cannot be done"),
    ((Conflict, TrustTooLow), 409, "That was not done"),
)
"""Errors, the status of the page that tells them, and its heading."""


def _fault(view: View, error: MemorydError) -> Response:
    """
    Say what went wrong: on the page that a form stood on, or on one of its own.

    What was typed into the form is there again, and so is the form where the daemon is away: it can be sent once more.
    """
    found = ((status, title) for errors, status, title in KINDS if isinstance(error, errors))
    status, title = next(found, (500, "That did not work"))
    message = in_words_of(error)
    if not view.is_form and error.field in OWNER_FIELDS:
        return view.page("choose.html", status, message=message)
    if view.is_form and (view.typed_texts or status == 503):  # noqa: PLR2004
        return view.page("refused.html", status, title=title, message=message, labels=LABELS)
    if view.is_form and view.form_stood_on:
        view.say(message, tone="fault")
        return view.to(view.form_stood_on)
    return view.page("fault.html", status, title=title, message=message)


def _refuse(text: str) -> Response:
    return PlainTextResponse(f"{text}\n", 403, headers=HEADERS)
