"""What turns text into vectors, and the registry of those by name."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import EXIT_LATER, StartupError
from memoryd.model.embedding import Embedded

__all__ = [
    "AnswerReader",
    "Embedder",
    "Encoder",
    "ModelRefused",
    "ModelUnavailable",
    "NoEmbedder",
    "PairReader",
    "Reranker",
    "TokenEncoder",
]

Vector = NDArray[np.float32]


class ModelRefused(StartupError):
    """The model cannot be used; the message says why and what to do."""


class ModelUnavailable(ModelRefused):
    """The model cannot be reached now; starting again later may help."""

    exit_code = EXIT_LATER


class Encoder(Protocol):
    """A model: stateless, callable from any thread."""

    provider: str
    fingerprint: str
    """Differs whenever vectors could: model, tokenizer, pooling, prefixes, length, dimensions."""
    dimensions: int
    local: bool
    """Whether it answers without anybody else: then a self-check may ask it for a vector."""

    def encode(self, texts: Sequence[str], *, query: bool) -> Vector:
        """Return vectors of length 1, shape (len(texts), dimensions), float32, in order. Raises Unavailable."""
        ...

    def cost(self, text: str) -> int:
        """Return roughly how many tokens the model will see."""
        ...


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that also tells the tokens of a text."""

    def read(self, texts: Sequence[str], *, query: bool) -> list[Embedded]:
        """Return texts with the vectors of their tokens, in order. Raises Unavailable."""
        ...


class Embedder(Protocol):
    """Vectors for the domain: fair among callers, queries before documents."""

    @property
    def provider(self) -> str:
        """The name in the configuration."""
        ...

    @property
    def fingerprint(self) -> str:
        """The encoder's; empty where there is none."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 where there is none."""
        ...

    async def queries(self, texts: Sequence[str], *, owner: Hashable, caller: Hashable = None) -> list[Embedded | None]:
        """
        Return queries of one call as the model sees them, in order; None where there is no model.

        What an owner asked before is remembered for that owner alone. Callers (by default owners) take turns. Raises
        Unavailable.
        """
        ...

    async def documents(
        self, texts: Sequence[str], *, caller: Hashable, background: bool = False, whole: bool = True
    ) -> list[Embedded | None]:
        """
        Return each text as the model sees it, in order; None where there is no model.

        Of long texts with their later windows, if they are wanted `whole`. Callers take turns; what is done in the
        background comes after all of them. Raises Unavailable.
        """
        ...

    def forget_queries(self) -> None:
        """Drop what is remembered of what was asked."""
        ...

    async def ping(self) -> None:
        """Return when a worker has answered; Unavailable if none can."""
        ...

    def close(self) -> None:
        """Drop what waits and stop."""
        ...


class Reranker(Protocol):
    """What reads a question and a text together; see `embedding.reranker`."""

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers, 0–1, of as many as there was time for, from the first on."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class AnswerReader(Protocol):
    """What reads a question and a memory together; see `embedding.readers.answer`."""

    def is_behind(self, *, urgent: bool = False) -> bool:
        """Whether so much waits to be read before what is asked now that it may wait for long."""
        ...

    async def read(self, texts: Sequence[tuple[str, str]], *, urgent: bool = False) -> list[float | None]:
        """
        Return how sure it is, 0–1, that each memory answers its question; None of what is too long to be read.

        What is urgent is read before all that is not.
        """
        ...

    def close(self) -> None:
        """End it."""
        ...


class PairReader(Protocol):
    """What reads an older and a newer statement together; see `embedding.readers.change`."""

    async def read(self, texts: Sequence[tuple[str, str]]) -> list[float]:
        """Return how sure it is, 0–1, that the newer statement of each pair makes the older one untrue."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class NoEmbedder:
    """Provider `none`: search by words and names alone."""

    provider = "none"
    fingerprint = ""
    dimensions = 0

    async def queries(
        self,
        texts: Sequence[str],
        *,
        owner: Hashable,  # noqa: ARG002
        caller: Hashable = None,  # noqa: ARG002
    ) -> list[Embedded | None]:
        """There are no vectors."""
        return [None] * len(texts)

    async def documents(
        self,
        texts: Sequence[str],
        *,
        caller: Hashable,  # noqa: ARG002
        background: bool = False,  # noqa: ARG002
        whole: bool = True,  # noqa: ARG002
    ) -> list[Embedded | None]:
        """There are no vectors."""
        return [None] * len(texts)

    def forget_queries(self) -> None:
        """Nothing is remembered."""

    async def ping(self) -> None:
        """It is always there."""

    def close(self) -> None:
        """It holds nothing."""
