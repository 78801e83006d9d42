"""
The configuration: one TOML file, overridden by the environment, with every key known.

A key has one place here: name, default, unit and meaning; `memoryd check` prints them, and a test holds the
documentation equal. The environment variable of `[store] path` is MEMORYD_STORE_PATH, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from memoryd.daemon.config_key import Key, key_of, reader_key
from memoryd.daemon.config_talk import ContextConfig, ConversationConfig

__all__ = ["Config", "label_of", "sections_of", "with_values"]

MIB = 1024 * 1024
MAX_PORT = 65_535
CRON_FIELDS = 5
LOG_FORMATS = ("auto", "json", "console")
POLICIES = ("supersede", "demote")
DECAYS = ("gentle", "ebbinghaus", "step", "off")
LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """How the daemon is reached and how it logs."""

    socket: str = key_of("", "path", "the admin socket; empty: in the runtime directory")
    log_format: str = key_of("auto", "name", "json, console, or auto: console on a terminal", one_of=LOG_FORMATS)
    log_level: str = key_of("info", "name", "debug logs every call, info those that fail", one_of=LOG_LEVELS)
    max_connections: int = key_of(256, "connections", "open at once; more have to wait", least=1, most=65_536)
    max_concurrent_calls: int = key_of(512, "calls", "under way at once; more are refused", least=1, most=65_536)
    shutdown_grace_s: float = key_of(10.0, "seconds", "the time for running calls to finish after SIGTERM", most=3600)


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """The sockets of sandboxes, and what a grant allows unless it says."""

    directory: str = key_of("", "path", "where the sockets are; empty: sandboxes, next to the admin socket")
    host_id: str = key_of("", "name", "this host, if several share a database: sockets made under another stay closed")
    calls_per_second: float = key_of(100.0, "calls/s", "calls of one grant, also in one burst; 0: no limit", most=1e6)
    writes_per_day: int = key_of(100_000, "writes", "of a grant in a day of UTC, at least one for 16 KiB; 0: no limit")
    stored_memories: int = key_of(100_000, "memories", "what came through a grant and is stored; 0: no limit")
    stored_bytes: int = key_of(
        256 * MIB, "bytes", "of the texts of what came through a grant, summaries and working memories too; 0: no limit"
    )
    connections: int = key_of(16, "connections", "open at once on a sandbox's socket; 0: 256", most=65_536)
    ended_grace_days: float = key_of(
        30.0, "days", "how long an ended grant is kept once none of its memories is stored", most=36_525
    )
    max_concurrent_calls: int = key_of(
        64, "calls", "of one grant, under way at once; more are refused", least=1, most=65_536
    )


@dataclass(frozen=True, slots=True)
class SharedConfig:
    """A Unix socket for many, each with a token."""

    socket: str = key_of("", "path", "the shared socket; empty: there is none")
    max_connections: int = key_of(256, "connections", "open at once on it", least=1, most=65_536)


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """TLS, each caller with a token."""

    listen: str = key_of("", "host:port", "where to listen; empty: nowhere")
    certificate_file: str = key_of("", "path", "the certificate with its chain, PEM; read again when it changes")
    key_file: str = key_of("", "path", "its private key, PEM")
    client_ca_file: str = key_of("", "path", "who signs clients' certificates, PEM; empty: clients need none")
    max_connections: int = key_of(256, "connections", "open at once on it", least=1, most=65_536)


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Who did what."""

    path: str = key_of("{data_dir}/audit.jsonl", "path", "the audit log; {data_dir} is the data directory; empty: none")
    required: bool = key_of(default=True, unit="", meaning="refuse to change what cannot be written down")
    max_bytes: int = key_of(64 * MIB, "bytes", "a file of this size is put aside", least=4096)
    keep_files: int = key_of(16, "files", "put aside and kept; the oldest go", most=100_000)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where memories last."""

    engine: str = key_of(
        "duckdb", "", "what holds them: a file of DuckDB, or a PostgreSQL server, which needs the extra postgres",
        one_of=("duckdb", "postgres"),
    )  # fmt: skip
    path: str = key_of("{data_dir}/memory.duckdb", "path", "the database; {data_dir} is the data directory")
    ledger: str = key_of("{data_dir}/ledger", "path", "the folder that notes what was purged, for older copies")
    memory_limit_bytes: int = key_of(256 * MIB, "bytes", "what DuckDB may take", least=128 * MIB)
    min_free_bytes: int = key_of(256 * MIB, "bytes", "below so much free space, writes are refused")
    dsn: str = key_of(
        "", "", "how the server is reached, without a password: host=/run/postgresql dbname=memoryd user=memoryd"
    )
    password_file: str = key_of("", "path", "the password for the server, alone in a file; empty: none is needed")
    pool: int = key_of(8, "connections", "to the server at most, and one more for each thread that loads", least=2)
    prepare: bool = key_of(True, "", "whether statements are prepared; false behind a pooler that shares transactions")
    statement_timeout_s: float = key_of(30.0, "seconds", "after which the server gives a statement up", least=1)
    lock_timeout_s: float = key_of(5.0, "seconds", "after which a call that waits for a lock is decided again", least=1)


@dataclass(frozen=True, slots=True)
class BackupConfig:
    """Where what is written goes some seconds later."""

    directory: str = key_of("", "path", "the folder of backups, best on another disk; empty: there are none")
    ship_s: float = key_of(5.0, "seconds", "between two looks at what was written", least=1, most=3600)
    keep_days: int = key_of(30, "days", "after which a chain goes, but for the newest and the last that was proved")
    spool_bytes: int = key_of(
        64 * MIB, "bytes", "of the log that wait for a folder that is slow; then some states are left out", least=MIB
    )
    encrypt_recipients_file: str = key_of(
        "", "path", "who may open the chains, as of age -R; empty: they are not encrypted; needs the extra encryption"
    )


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Figures for Prometheus."""

    enabled: bool = key_of(False, "", "whether figures are kept, for: memoryd metrics; needs the extra metrics")
    listen: str = key_of(
        "", "", "where a scraper reads them: the path of a Unix socket, or 127.0.0.1:9464; empty: nowhere"
    )
    allow_remote: bool = key_of(False, "", "whether listen may be an address that other hosts reach")


@dataclass(frozen=True, slots=True)
class TracesConfig:
    """Spans of calls for OpenTelemetry."""

    endpoint: str = key_of(
        "",
        "",
        "a collector of OTLP over gRPC, http://127.0.0.1:4317; empty: no spans are made; needs the extra traces",
    )
    ratio: float = key_of(0.0, "share", "of calls that belong to no trace, how many begin one", most=1)


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What is searched in memory."""

    memory_bytes: int = key_of(1024 * MIB, "bytes", "what all indexes together may take; the least used go first")


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """What counts as an answer."""

    floor: bool = key_of(
        default=True,
        unit="",
        meaning="leave out what is no answer, of searches and contexts that name no min_score; measured in English",
        per_agent=True,
    )
    read_answers: bool = key_of(
        default=False, unit="", meaning="read answers in searches too, not in contexts alone; takes search.floor"
    )
    rerank: str = key_of("", "path", "a cross-encoder that orders the best hits: a directory with ONNX; empty: none")
    rerank_budget_s: float = key_of(0.2, "seconds", "that it may take for a search", least=0.01, most=60)


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """What turns text into vectors."""

    provider: str = key_of(
        "builtin", "name or path", "builtin, builtin-float, openai, none, or a directory in the Hugging Face layout"
    )
    dimensions: int = key_of(0, "numbers", "length of a vector; 0: the model's")
    reembed: bool = key_of(default=True, unit="", meaning="after a change of model, re-embed in the background")
    url: str = key_of("", "URL", "of openai: the endpoint, up to and with /v1")
    model: str = key_of("", "name", "of openai: the model")
    api_key_file: str = key_of("", "path", "of openai: a file that holds the key; empty: no key is sent")
    timeout_s: float = key_of(10.0, "seconds", "of openai: how long an answer may take", least=0.1, most=3600)


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """What is forgotten when."""

    enabled: bool = key_of(
        default=True,
        unit="",
        meaning="whether statements and messages are stored; mostly switched off for one agent",
        per_agent=True,
    )
    auto_gc: bool = key_of(default=True, unit="", meaning="collect garbage at start")
    delete_grace_days: float = key_of(30.0, "days", "a deleted memory can be restored for so long", most=36_525)
    supersede_grace_days: float = key_of(
        180.0, "days", "a superseded memory is kept for so long; 0: for ever", most=36_525
    )
    expired_grace_days: float = key_of(30.0, "days", "an expired memory is kept for so long", most=36_525)
    extraction_enabled: bool = key_of(
        default=True, unit="", meaning="whether anything is learnt from messages; see [learning]", per_agent=True
    )
    extraction_confidence_threshold: float = key_of(
        0.7, "confidence", "what is learnt with less is dropped", most=1, per_agent=True
    )
    extraction_review: bool = key_of(
        default=False, unit="", meaning="what is learnt waits until it is approved: memoryd review", per_agent=True
    )
    max_entries: int = key_of(
        0, "memories", "live ones of one owner; above it the least valuable go; 0: no cap", per_agent=True
    )
    dedup_cosine: float = key_of(0.85, "cosine", "above it, statements without a relevant difference are one", most=1)
    dedup_jaccard: float = key_of(0.75, "share", "of words; from it, the same of longer statements", most=1)
    supersede_policy: str = key_of(
        "supersede", "name", "what is contradicted is superseded, or demoted to confidence 0.3", one_of=POLICIES
    )
    decay: str = key_of("gentle", "name", "how confidence fades", one_of=DECAYS)


@dataclass(frozen=True, slots=True)
class ReadersConfig:
    """The small models that read plain talk: builtin, none, or a directory with one of your own."""

    retrieval: str = reader_key("tunes the packaged model to find answers")
    answer: str = reader_key("tells how well a memory answers a question")
    change: str = reader_key("tells that a newer statement makes an older one untrue")
    people: str = reader_key("tells which words name people")
    keeping: str = reader_key("tells what is worth keeping of what people say")


@dataclass(frozen=True, slots=True)
class LearningConfig:
    """How messages become memories."""

    extractor: str = key_of(
        "rules", "name", "rules, openai (besides the rules), host (an agent of yours), none, or one that a package adds"
    )
    judge: str = key_of("none", "name", "who decides what the rules left contested", one_of=("none", "openai"))
    writer: str = key_of(
        "rules", "name", "who writes weekly digests and summaries of long threads", one_of=("rules", "openai", "none")
    )
    wait_s: float = key_of(30.0, "seconds", "after a message, before its thread is learnt from", most=86_400)
    max_attempts: int = key_of(5, "attempts", "that fail in a row, and a thread is parked", least=1, most=100)


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """The language model that `openai` means in [learning]."""

    url: str = key_of("", "URL", "an OpenAI-compatible endpoint, up to and with /v1")
    model: str = key_of("", "name", "the endpoint's model")
    api_key_file: str = key_of("", "path", "a file that holds the key; empty: no key is sent")
    timeout_s: float = key_of(60.0, "seconds", "how long a whole answer may take", least=0.1, most=3600)
    max_output_tokens: int = key_of(1024, "tokens", "of an answer", least=16, most=100_000)
    max_concurrent: int = key_of(2, "questions", "under way at once", least=1, most=64)
    max_tokens_per_day: int = key_of(500_000, "tokens", "asked and answered in a day of schedule.timezone; 0: no limit")
    max_cost_per_day: float = key_of(0.0, "money", "that a day may cost, by the prices below; 0: no limit")
    input_price: float = key_of(0.0, "money", "a million tokens that are asked")
    output_price: float = key_of(0.0, "money", "a million tokens that are answered")


@dataclass(frozen=True, slots=True)
class EntitiesConfig:
    """Who finds names in statements."""

    spacy_model: str = key_of("en_core_web_sm", "name", "spaCy's pipeline: a package or a directory")


@dataclass(frozen=True, slots=True)
class StrategiesConfig:
    """Which finders look when."""

    fast: tuple[str, ...] = key_of(("regex",), "names", "before an answer")
    accurate: tuple[str, ...] = key_of(("regex", "people", "spacy"), "names", "in the background, where they are")


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """When the daemon looks after its store by itself: cron expressions; empty: never."""

    timezone: str = key_of(
        "local", "name", "of the expressions, and of dates in contexts: local, or an IANA name such as Europe/Berlin"
    )
    enrichment: str = key_of("0 2 * * *", "cron", "look again for entities")
    consolidation: str = key_of("0 3 * * *", "cron", "learn from what waits, and end sessions that were learnt from")
    judgement: str = key_of("30 3 * * *", "cron", "have the language model decide what is contested, if it is used so")
    decay: str = key_of("0 4 * * *", "cron", "forget what has faded")
    gc: str = key_of("30 4 * * *", "cron", "erase what is past its grace")
    reflection: str = key_of("0 3 * * 0", "cron", "sum up the week")
    compaction: str = key_of("0 5 * * 0", "cron", "rewrite the database without what was purged")
    backup: str = key_of("0 1 * * *", "cron", "begin a new chain of backups, prove it, remove old ones")

    @property
    def zone(self) -> tzinfo | None:
        """The time zone; None: the system's."""
        return None if self.timezone == "local" else ZoneInfo(self.timezone)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that the operator decides."""

    daemon: DaemonConfig = DaemonConfig()
    sandbox: SandboxConfig = SandboxConfig()
    shared: SharedConfig = SharedConfig()
    tcp: TcpConfig = TcpConfig()
    audit: AuditConfig = AuditConfig()
    store: StoreConfig = StoreConfig()
    backup: BackupConfig = BackupConfig()
    metrics: MetricsConfig = MetricsConfig()
    traces: TracesConfig = TracesConfig()
    index: IndexConfig = IndexConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    memory: MemoryConfig = MemoryConfig()
    readers: ReadersConfig = ReadersConfig()
    learning: LearningConfig = LearningConfig()
    llm: LlmConfig = LlmConfig()
    entities: EntitiesConfig = EntitiesConfig()
    strategies: StrategiesConfig = field(default=StrategiesConfig(), metadata={"label": "entities.strategies"})
    schedule: ScheduleConfig = ScheduleConfig()
    search: SearchConfig = SearchConfig()
    context: ContextConfig = field(default_factory=ContextConfig)
    conversation: ConversationConfig = field(default_factory=ConversationConfig)
    agents: Mapping[str, Mapping[tuple[str, str], Any]] = field(default_factory=dict)
    """By agent, what holds for it instead, by section and key: [agents.NAME.memory] enabled = false."""

    def of_agent(self, agent_id: str) -> Config:
        """Return what holds for an agent."""
        return with_values(self, self.agents.get(agent_id, {}))

    def entries(self) -> Iterator[Key]:
        """Yield every key with its value."""
        for section in sections_of():
            values = getattr(self, section.name)
            for item in fields(values):
                meta = item.metadata
                yield Key(
                    label_of(section),
                    item.name,
                    getattr(values, item.name),
                    item.default,
                    meta["unit"],
                    meta["meaning"],
                    meta["least"],
                    meta["most"],
                    meta["one_of"],
                    meta["per_agent"],
                )


def sections_of() -> list[Field[Any]]:
    """Return the sections of the configuration."""
    return [item for item in fields(Config) if item.name != "agents"]


def with_values(config: Config, values: Mapping[tuple[str, str], Any]) -> Config:
    """Return a configuration with other values, by section and key."""
    for item in sections_of():
        changed = {name: value for (of, name), value in values.items() if of == label_of(item)}
        if changed:
            config = replace(config, **{item.name: replace(getattr(config, item.name), **changed)})
    return config


def label_of(section: Field[Any]) -> str:
    """Return how a section is called in the file."""
    return str(section.metadata.get("label", section.name))
