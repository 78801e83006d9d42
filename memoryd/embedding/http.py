"""An OpenAI-compatible endpoint (`POST …/embeddings`) as encoder."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import urllib3
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused, ModelUnavailable
from memoryd.errors import TextRefused, Unavailable

__all__ = ["HttpEncoder"]

MAX_REPLY_BYTES = 64 * 1024 * 1024
ENDPOINT_IS_DOWN = frozenset({401, 403, 404, 429})
HTTP_OK = range(200, 300)
HTTP_SERVER_ERROR = 500
CONNECTIONS = 4  # that are kept: more than the workers that embed
PAUSE_S = 5.0  # after a failure the endpoint is left alone for so long, so that no one waits for what is down


class HttpEncoder:
    """Asks an endpoint; a failure is Unavailable, so that a search goes on with its other legs."""

    provider = "openai"
    local = False

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str = "",
        dimensions: int = 0,
        timeout_s: float = 10.0,
        proxy: str = "",
    ) -> None:
        """
        Take the base URL (…/v1); dimensions 0 means the model's own, which the endpoint is asked once for.

        Connections are kept and used again; `proxy` is the URL of one to go through, as the environment has it: the
        scheme may be missing, a name and a password may be in it. ModelRefused if one of these cannot be used.
        """
        if not url.startswith(("http://", "https://")):
            raise ModelRefused(f"embedding.url is {url!r}; it must begin with http:// or https://")
        if not model:
            raise ModelRefused("embedding.model is not set; name the endpoint's model")
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = api_key
        self._asked = dimensions
        self._pool = _pool(proxy, timeout_s)
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

    def _post(self, body: bytes, headers: dict[str, str]) -> bytes:
        """Return what the endpoint answers with 2xx; it may not send us elsewhere, as the key is for it alone."""
        data = b""
        try:
            reply = self._send(body, headers)
            status = reply.status
            try:
                if status in HTTP_OK:
                    data = reply.read(MAX_REPLY_BYTES)
            finally:
                reply.close()  # of a reply that was read to its end the connection is back in the pool already
        except (OSError, urllib3.exceptions.HTTPError) as error:
            self._leave_alone()
            raise Unavailable(f"the embedding endpoint cannot be reached ({type(error).__name__})") from None
        if status not in HTTP_OK:
            if status in ENDPOINT_IS_DOWN or status >= HTTP_SERVER_ERROR:
                self._leave_alone()
                raise Unavailable(f"the embedding endpoint answered {status}")
            raise TextRefused(f"the embedding endpoint answered {status}")  # of these texts alone
        return bytes(data)

    def _send(self, body: bytes, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Send a request; once more, on a new connection, where a kept one broke: asking twice changes nothing."""
        ask = {"body": body, "headers": headers, "redirect": False, "preload_content": False}
        try:
            return self._pool.request("POST", self._url, **ask)  # type: ignore[arg-type]  # by their names
        except urllib3.exceptions.ProtocolError:
            self._pool.clear()
            return self._pool.request("POST", self._url, **ask)  # type: ignore[arg-type]  # by their names

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            data = json.loads(self._post(json.dumps(body).encode(), headers))
            rows = sorted(data["data"], key=lambda item: item["index"])
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"the embedding endpoint cannot be used ({type(error).__name__})") from None
        expected = getattr(self, "dimensions", self._asked)
        if vectors.ndim != 2 or len(vectors) != len(texts) or (expected and vectors.shape[1] != expected):  # noqa: PLR2004
            raise Unavailable(f"the embedding endpoint sent shape {vectors.shape} for {len(texts)} texts")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise Unavailable("the embedding endpoint sent a vector of no length")
        return np.asarray(vectors / norms, dtype=np.float32)


def _pool(proxy: str, timeout_s: float) -> urllib3.PoolManager:
    """Return the pool of connections, through a proxy if there is one; its password goes with every request."""
    pools: dict[str, Any] = {"maxsize": CONNECTIONS, "timeout": timeout_s, "retries": False}
    if not proxy:
        return urllib3.PoolManager(**pools)
    try:
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        named, _, host = address.netloc.rpartition("@")
        headers = urllib3.make_headers(proxy_basic_auth=unquote(named)) if named else None
        return urllib3.ProxyManager(f"{address.scheme}://{host}", proxy_headers=headers, **pools)
    except (ValueError, urllib3.exceptions.HTTPError) as error:
        raise ModelRefused(f"the proxy that the environment names cannot be used ({type(error).__name__})") from None
