"""An OpenAI-compatible endpoint (`POST …/embeddings`) as encoder."""

from __future__ import annotations

import hashlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused, ModelUnavailable
from memoryd.errors import Unavailable

__all__ = ["HttpEncoder"]

MAX_REPLY_BYTES = 64 * 1024 * 1024
ENDPOINT_IS_DOWN = frozenset({401, 403, 404, 429})
HTTP_SERVER_ERROR = 500
PAUSE_S = 5.0  # after a failure the endpoint is left alone for so long, so that nobody waits for what is down


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses to be sent elsewhere: the key is for this endpoint alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request, which makes the redirect an error."""


class HttpEncoder:
    """Asks an endpoint; a failure is Unavailable, so that a search goes on with its other legs."""

    provider = "openai"
    local = False

    def __init__(
        self, url: str, model: str, *, api_key: str = "", dimensions: int = 0, timeout_s: float = 10.0
    ) -> None:
        """Take the base URL (…/v1); dimensions 0 means the model's own, which the endpoint is asked once for."""
        if not url.startswith(("http://", "https://")):
            raise ModelRefused(f"embedding.url is {url!r}; it must begin with http:// or https://")
        if not model:
            raise ModelRefused("embedding.model is not set; name the endpoint's model")
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = api_key
        self._asked = dimensions
        self._timeout_s = timeout_s
        self._open = urllib.request.build_opener(_NoRedirects).open
        self._down_until = 0.0
        try:
            self.dimensions = dimensions or self.encode(["dimensions"], query=False).shape[1]
        except Unavailable as error:
            raise ModelUnavailable(
                f"{error}; set embedding.dimensions to start without asking it, or embedding.provider to another"
            ) from None
        named = json.dumps(["openai", self._url, model, self.dimensions])
        self.fingerprint = hashlib.sha256(named.encode()).hexdigest()[:32]

    def cost(self, text: str) -> int:
        """Return roughly how many tokens the model will see: four characters each."""
        return len(text) // 4 + 2

    def encode(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:  # noqa: ARG002  one form for both
        """Return vectors of length 1, shape (len(texts), dimensions), float32; raises Unavailable."""
        if time.monotonic() < self._down_until:
            raise Unavailable("the embedding endpoint failed a moment ago")
        return self._ask(texts)

    def _leave_alone(self) -> None:
        self._down_until = time.monotonic() + PAUSE_S

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        request = urllib.request.Request(  # noqa: S310  the scheme is checked above
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        try:
            with self._open(request, timeout=self._timeout_s) as reply:
                data = json.loads(reply.read(MAX_REPLY_BYTES))
            rows = sorted(data["data"], key=lambda item: item["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except urllib.error.HTTPError as error:
            if error.code in ENDPOINT_IS_DOWN or error.code >= HTTP_SERVER_ERROR:
                self._leave_alone()  # any other code is the fault of these texts, not of everyone's
            raise Unavailable(f"the embedding endpoint answered {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            self._leave_alone()
            raise Unavailable(f"the embedding endpoint cannot be reached ({type(error).__name__})") from None
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"the embedding endpoint cannot be used ({type(error).__name__})") from None
        expected = getattr(self, "dimensions", self._asked)
        if vectors.ndim != 2 or len(vectors) != len(texts) or (expected and vectors.shape[1] != expected):  # noqa: PLR2004
            raise Unavailable(f"the embedding endpoint sent shape {vectors.shape} for {len(texts)} texts")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise Unavailable("the embedding endpoint sent a vector of no length")
        return np.asarray(vectors / norms, dtype=np.float32)
