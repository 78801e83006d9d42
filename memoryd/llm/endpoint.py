"""An OpenAI-compatible endpoint (`POST …/chat/completions`): one question, one reply, within a time and a size."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from memoryd.errors import StartupError, Unavailable

__all__ = ["ChatEndpoint", "ChatUnavailable", "EndpointRefused", "QuestionRefused", "Reply"]

MAX_REPLY_BYTES = 1 << 20
MOST_TOKENS = 1 << 31  # that an endpoint may say it has counted
BUSY, SERVER_ERROR = 429, 500
OF_THE_QUESTION = frozenset({400, 413, 422})
LONGEST_RETRY_AFTER_S = 3600.0
REDACTED = "the language model"


class EndpointRefused(StartupError):
    """The configuration names an endpoint that cannot be one."""


class ChatUnavailable(Unavailable):
    """The endpoint gave no answer that can be used; another time it may."""

    def __init__(self, message: str, *, may_be_billed: bool, retry_after_s: float = 0.0) -> None:
        """Say why, without content; whether it may have cost something; and how long the endpoint wants to be left."""
        super().__init__(message)
        self.may_be_billed = may_be_billed
        self.retry_after_s = retry_after_s


class QuestionRefused(Unavailable):
    """The endpoint does not take this question; others it may."""

    may_be_billed = False


class TextMissing(QuestionRefused):
    """The model gave no text as its answer to this question."""

    may_be_billed = True


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, and how many tokens it counted (None: it did not say)."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_cut: bool = False
    """Whether it ended because of its length."""


class ChatEndpoint:
    """Asks one model. Redirects are not followed, as the key is for this endpoint alone."""

    def __init__(
        self, url: str, model: str, *, api_key: str = "", timeout_s: float = 60.0, max_output_tokens: int = 1024
    ) -> None:
        """Take the base URL (…/v1). EndpointRefused if one of these cannot be used."""
        if not url.startswith(("http://", "https://")):
            raise EndpointRefused(f"llm.url is {url!r}; it must begin with http:// or https://")
        if not model:
            raise EndpointRefused("llm.model is not set; name the endpoint's model")
        self.model = model
        self.max_output_tokens = max_output_tokens
        self._url = url.rstrip("/") + "/chat/completions"
        self._timeout_s = timeout_s
        self._headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._form = 0
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self,
        system: str,
        question: str,
        schema: Mapping[str, Any] | None = None,
        *,
        again: Callable[[], Awaitable[None]] | None = None,
    ) -> Reply:
        """
        Return the reply, by a JSON schema as far as the endpoint knows them. ChatUnavailable, QuestionRefused.

        `again` is awaited before the question is sent once more, where the first time may have cost something.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
            "max_tokens": self.max_output_tokens,
            "temperature": 0,
        }
        if schema is None:
            return _reply_of(await self._post(body))
        is_known = True
        for n, form in enumerate(_forms(schema)[self._form :], self._form):
            try:
                reply = await self._post(body | form, is_last=not form)
            except _FormRefused as refused:
                is_known = is_known and not refused.may_be_billed
                if refused.may_be_billed and again is not None:
                    await again()
                continue
            if is_known:
                self._form = n  # it takes this one, and has refused those before it: they are not tried again
            return _reply_of(reply)
        raise AssertionError("the last form is none, which is not refused as one")

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _post(self, body: Mapping[str, Any], *, is_last: bool = True) -> bytes:
        """Return what the endpoint answers with 200; _FormRefused where another form of the question may do."""
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout_s, headers=self._headers)
        try:
            async with asyncio.timeout(self._timeout_s), self._client.stream("POST", self._url, json=body) as reply:
                if reply.status_code != httpx.codes.OK:
                    raise _refusal(reply, is_last=is_last)
                data = bytearray()
                async for piece in reply.aiter_bytes():
                    data += piece
                    if len(data) > MAX_REPLY_BYTES:
                        raise ChatUnavailable(f"{REDACTED} sent more than {MAX_REPLY_BYTES} bytes", may_be_billed=True)
                return bytes(data)
        except TimeoutError:
            raise ChatUnavailable(
                f"{REDACTED} gave no answer within {self._timeout_s:g} s", may_be_billed=True
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL)
            raise ChatUnavailable(
                f"{REDACTED} cannot be reached ({type(error).__name__})", may_be_billed=reached
            ) from None


class _FormRefused(Exception):
    """The endpoint may not know the form in which a reply is asked for, or has failed at it."""

    def __init__(self, *, may_be_billed: bool) -> None:
        super().__init__()
        self.may_be_billed = may_be_billed


def _forms(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the forms in which a reply by a schema is asked for: OpenAI's, llama.cpp's, and none."""
    strict = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    return [{"response_format": strict}, {"response_format": {"type": "json_object", "schema": schema}}, {}]


def _refusal(reply: httpx.Response, *, is_last: bool) -> Exception:
    status = reply.status_code
    if not is_last and (status in OF_THE_QUESTION or status == SERVER_ERROR):
        return _FormRefused(may_be_billed=status == SERVER_ERROR)
    if status in OF_THE_QUESTION:
        return QuestionRefused(f"{REDACTED} refused the question with status {status}")
    return ChatUnavailable(
        f"{REDACTED} answered with status {status}",
        may_be_billed=status >= SERVER_ERROR,
        retry_after_s=_seconds(reply.headers.get("retry-after", "")) if status >= BUSY else 0.0,
    )


def _seconds(written: str) -> float:
    """Return the seconds of a Retry-After header; a date there is not read."""
    try:
        return min(LONGEST_RETRY_AFTER_S, max(0.0, float(written)))
    except ValueError:
        return 0.0


def _reply_of(data: bytes) -> Reply:
    """Return the reply in an answer of the endpoint."""
    try:
        answer = json.loads(data)
        choice = answer["choices"][0]
        text = choice["message"]["content"]
        if text is None:
            raise TextMissing(f"{REDACTED} gave no text")
        text += ""  # TypeError where it is no text
        usage = answer.get("usage") or {}
        counts = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
        return Reply(text, counts[0], counts[1], is_cut=choice.get("finish_reason") == "length")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ChatUnavailable(f"{REDACTED} sent an answer that is none", may_be_billed=True) from None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS else None
