"""What the daemon is put together from: the model, the store, the index, and what the use cases are handed."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
import urllib.request
from base64 import b32encode
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.readers import load_every_finder, make_answer_reader, make_change_reader, reader_directory
from memoryd.domain.clock import ClockWatch
from memoryd.domain.faults import Faults
from memoryd.domain.policy import ContextPolicy, ConversationPolicy, Policy
from memoryd.domain.ports import GrantCheck, Guards, NoGrants, Ports, Readers
from memoryd.domain.rules import Rules
from memoryd.domain.shared import LastThreads, SharedState
from memoryd.domain.tokens import Measure, no_tokenizer
from memoryd.embedding.base import (
    Embedder,
    Encoder,
    ModelRefused,
    NoEmbedder,
    Reranker,
)
from memoryd.embedding.directory import directory_encoder
from memoryd.embedding.http import HttpEncoder
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.readers.retrieval import retrieval_encoder
from memoryd.embedding.reranker import CrossEncoder
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.embedding.token_counts import InstalledTokenizers
from memoryd.identity.grants import Grants
from memoryd.index.cache import ScopeIndexes
from memoryd.index.records import forget_unpacked
from memoryd.knowledge.grammar.names import forget_names
from memoryd.knowledge.grammar.sentences import forget_fillers
from memoryd.knowledge.lexicon.spelling import forget_stems
from memoryd.knowledge.secrets import SecretDetector
from memoryd.knowledge.text_traits import forget_texts
from memoryd.model.commits import Applied
from memoryd.model.measures import NO_MEASURES, Measures
from memoryd.store.base import Store, StoreInfo

__all__ = [
    "make_embedder",
    "make_grants",
    "make_ports",
    "new_id",
    "now_utc",
    "policy_of",
    "proxy_for",
    "uptime_s",
]

ID_BYTES = 16
NOTES_SHARE = 4  # of index.memory_bytes, besides: what notes may take
T = TypeVar("T")

log = structlog.get_logger("memoryd.daemon")


def now_utc() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def uptime_s() -> float:
    """Return the seconds since the system was started, those of sleep too; no one can set them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def new_id() -> str:
    """Return 128 random bits as 26 lower-case characters, so that the first eight tell them apart."""
    return b32encode(secrets.token_bytes(ID_BYTES)).decode().rstrip("=").lower()


def _encoder(config: Config) -> Encoder | None:
    embedding = config.embedding
    if embedding.provider == "none":
        return None
    if embedding.provider == "builtin" and config.readers.retrieval != "none":
        return retrieval_encoder(reader_directory(config, "retrieval"), dimensions=embedding.dimensions)
    if embedding.provider in {"builtin", "builtin-float"}:
        return builtin_encoder(dimensions=embedding.dimensions, in_float=embedding.provider == "builtin-float")
    if embedding.provider == "openai":
        key = ""
        if embedding.api_key_file:
            try:
                key = Path(embedding.api_key_file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ModelRefused(f"embedding.api_key_file cannot be read: {error.strerror}") from None
        return HttpEncoder(
            embedding.url,
            embedding.model,
            api_key=key,
            dimensions=embedding.dimensions,
            timeout_s=embedding.timeout_s,
            proxy=proxy_for(embedding.url),
        )
    directory = Path(embedding.provider)
    if not directory.is_dir():
        raise ModelRefused(
            f"embedding.provider is {embedding.provider!r}, which is neither builtin, builtin-float, openai, none nor"
            " a directory"
        )
    return directory_encoder(directory, dimensions=embedding.dimensions)


def proxy_for(url: str) -> str:
    """Return the proxy that the environment names for a URL; empty: none."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")


def make_embedder(config: Config, measures: Measures = NO_MEASURES) -> Embedder:
    """Return what the configuration names; ModelRefused if it cannot be used."""
    encoder = _encoder(config)
    return NoEmbedder() if encoder is None else ScheduledEmbedder(encoder, measures=measures)


def make_reranker(config: Config) -> Reranker | None:
    """Return the cross-encoder that the configuration names, if any; ModelRefused if it cannot be used."""
    if not config.search.rerank:
        return None
    return CrossEncoder(Path(config.search.rerank), budget_s=config.search.rerank_budget_s)


async def make_grants(store: Store) -> Grants:
    """Return the grants that the store holds."""
    head = await store.grants.head()  # first: what another daemon changes meanwhile is taken in later
    known = await store.grants.all(), await store.grants.token_keys()
    today = now_utc().date()
    return Grants(store, *known, time.monotonic, secrets.token_bytes, today=today, head=head)


def policy_of(config: Config) -> Policy:
    """Return what a configuration decides for every agent that it does not name."""

    def kept(section: object, policy: type[T]) -> T:
        return policy(**{item.name: getattr(section, item.name) for item in fields(policy)})  # type: ignore[arg-type]

    return Policy(
        delete_grace_days=config.memory.delete_grace_days,
        supersede_grace_days=config.memory.supersede_grace_days,
        expired_grace_days=config.memory.expired_grace_days,
        date_after_days=config.context.date_after_days,
        zone=config.schedule.zone,
        enabled=config.memory.enabled,
        floor=config.search.floor,
        extraction_enabled=config.memory.extraction_enabled,
        extraction_review=config.memory.extraction_review,
        extraction_threshold=config.memory.extraction_confidence_threshold,
        max_entries=config.memory.max_entries,
        context=kept(config.context, ContextPolicy),
        conversation=kept(config.conversation, ConversationPolicy),
        rules=Rules(
            decay=config.memory.decay,
            demote=config.memory.supersede_policy == "demote",
            dedup_cosine=config.memory.dedup_cosine,
            dedup_jaccard=config.memory.dedup_jaccard,
        ),
    )


def page_secret(info: StoreInfo) -> bytes:
    """Return what page tokens are signed with: another one after each restore from a backup."""
    return hashlib.blake2b(info.history_id.encode(), key=info.secret).digest() if info.history_id else info.secret


async def make_ports(  # noqa: PLR0913  the wiring of all parts
    config: Config,
    store: Store,
    embedder: Embedder,
    *,
    grants: GrantCheck | None = None,
    clock: ClockWatch | None = None,
    new_id: Callable[[], str] = new_id,
    tokenizers: Path | None = None,
    measures: Measures = NO_MEASURES,
) -> Ports:
    """
    Wire store, index and embedder: every commit reaches the index before it is acknowledged.

    Without `grants`, everybody is the host; without `tokenizers`, a directory, none is installed.
    """
    info = await store.info()
    indexes = ScopeIndexes(
        store.commits.memories,
        budget_bytes=config.index.memory_bytes,
        dimensions=embedder.dimensions,
        fingerprint=embedder.fingerprint,
        on_fault=lambda fault: log.error("index_dropped", error=fault),
    )
    store.commits.memories.follow(indexes.apply)
    store.commits.memories.follow(lambda applied: _forget_read(embedder) if applied.change.purges else None)
    episodes = ScopeIndexes(
        store.commits.messages,
        budget_bytes=config.conversation.index_bytes,
        dimensions=embedder.dimensions,
        fingerprint=embedder.fingerprint,
        on_fault=lambda fault: log.error("message_index_dropped", error=fault),
    )
    store.commits.messages.follow(episodes.apply)
    notes = ScopeIndexes(
        store.commits.notes,
        budget_bytes=config.index.memory_bytes // NOTES_SHARE,
        dimensions=embedder.dimensions,
        fingerprint=embedder.fingerprint,
        on_fault=lambda fault: log.error("note_index_dropped", error=fault),
    )
    store.commits.notes.follow(notes.apply)
    last_threads = LastThreads()

    def follow_talk(applied: Applied) -> None:
        if applied.change.erases:
            forget_talk()

    def forget_talk() -> None:
        last_threads.forget()
        _forget_read(embedder)

    store.commits.messages.follow(follow_talk)
    episodes.on_fetched(follow_talk)
    episodes.on_lost(forget_talk)
    detector = SecretDetector()
    fast, accurate = load_every_finder(config)
    ports = Ports(
        store=store,
        indexes=indexes,
        episodes=episodes,
        notes=notes,
        embedder=embedder,
        new_id=new_id,
        secret=info.secret,
        page_secret=page_secret(info),
        policy=replace(policy_of(config), agents={name: policy_of(config.of_agent(name)) for name in config.agents}),
        guards=Guards(detector, detector.is_token, detector.masker, grants or NoGrants()),
        readers=Readers(
            reranker=await asyncio.to_thread(make_reranker, config),
            answer_reader=await asyncio.to_thread(make_answer_reader, config),
            reads_searches=config.search.read_answers,
            change_reader=await asyncio.to_thread(make_change_reader, config),
            finders=fast,
            accurate_finders=accurate,
            tokenizer=no_tokenizer if tokenizers is None else _tokenizer_of(tokenizers),
        ),
        shared=SharedState(last_threads=last_threads, clock=clock, faults=Faults(_tell_fault)),
        measures=measures,
    )
    store.commits.memories.follow(ports.follow)
    indexes.on_fetched(ports.follow)
    indexes.on_lost(lambda: _forget_read(embedder))
    return ports


def _tell_fault(step: str, error: str, place: str) -> None:
    log.error("statement_not_read", step=step, error=error, place=place)


def _tokenizer_of(directory: Path) -> Callable[[str], Measure]:
    installed = InstalledTokenizers(directory)
    return lambda name: Measure(installed.counter(name))


def _forget_read(embedder: Embedder) -> None:
    """Drop what was kept of the texts that were read lately, as something is purged."""
    forget_unpacked()
    forget_names()
    forget_fillers()
    forget_stems()
    forget_texts()
    embedder.forget_queries()
