"""
The configuration: one TOML file, overridden by the environment, with every key known.

A key has one place here: name, default, unit and meaning; `memoryd check` prints them, and a test holds the
documentation equal. The environment variable of `[store] path` is MEMORYD_STORE_PATH, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from memoryd.errors import StartupError
from memoryd.model import limits

__all__ = ["Config", "ConfigError", "Key", "label_of", "sections_of"]

MIB = 1024 * 1024
MAX_PORT = 65_535
CRON_FIELDS = 5
LOG_FORMATS = ("auto", "json", "console")
POLICIES = ("supersede", "demote")
DECAYS = ("gentle", "ebbinghaus", "step", "off")
LOG_LEVELS = ("debug", "info", "warning", "error")


class ConfigError(StartupError):
    """The configuration cannot be used; the message names the key and the way out."""


def _key(
    default: Any, unit: str, meaning: str, *, least: float = 0, most: float = 2**40, one_of: tuple[str, ...] = ()
) -> Any:
    metadata = {"unit": unit, "meaning": meaning, "least": least, "most": most, "one_of": one_of}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """How the daemon is reached and how it logs."""

    socket: str = _key("", "path", "the admin socket; empty: in the runtime directory")
    log_format: str = _key("auto", "name", "json, console, or auto: console on a terminal", one_of=LOG_FORMATS)
    log_level: str = _key("info", "name", "debug logs every call, info those that fail", one_of=LOG_LEVELS)
    max_connections: int = _key(256, "connections", "open at once; more have to wait", least=1, most=65_536)
    max_concurrent_calls: int = _key(512, "calls", "under way at once; more are refused", least=1, most=65_536)
    shutdown_grace_s: float = _key(10.0, "seconds", "the time for running calls to finish after SIGTERM", most=3600)


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """The sockets of sandboxes, and what a grant allows unless it says."""

    directory: str = _key("", "path", "where the sockets are; empty: sandboxes, beside the admin socket")
    host_id: str = _key("", "name", "this host, if several share a database: sockets made under another stay closed")
    calls_per_second: float = _key(100.0, "calls/s", "calls of one grant, also in one burst; 0: no limit", most=1e6)
    writes_per_day: int = _key(100_000, "writes", "a grant's adds, deletes and restores in a day of UTC; 0: no limit")
    stored_memories: int = _key(100_000, "memories", "what came through a grant and is stored; 0: no limit")
    stored_bytes: int = _key(256 * MIB, "bytes", "of the texts of what came through a grant; 0: no limit")
    connections: int = _key(16, "connections", "open at once on a sandbox's socket; 0: 256", most=65_536)
    ended_grace_days: float = _key(
        30.0, "days", "how long an ended grant is kept once none of its memories is stored", most=36_525
    )
    max_concurrent_calls: int = _key(
        64, "calls", "of one grant, under way at once; more are refused", least=1, most=65_536
    )


@dataclass(frozen=True, slots=True)
class SharedConfig:
    """A Unix socket for many, each with a token."""

    socket: str = _key("", "path", "the shared socket; empty: there is none")
    max_connections: int = _key(256, "connections", "open at once on it", least=1, most=65_536)


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """TLS, each caller with a token."""

    listen: str = _key("", "host:port", "where to listen; empty: nowhere")
    certificate_file: str = _key("", "path", "the certificate with its chain, PEM; read again when it changes")
    key_file: str = _key("", "path", "its private key, PEM")
    client_ca_file: str = _key("", "path", "who signs clients' certificates, PEM; empty: clients need none")
    max_connections: int = _key(256, "connections", "open at once on it", least=1, most=65_536)


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Who did what."""

    path: str = _key("{data_dir}/audit.jsonl", "path", "the audit log; {data_dir} is the data directory; empty: none")
    required: bool = _key(default=True, unit="", meaning="refuse to change what cannot be written down")
    max_bytes: int = _key(64 * MIB, "bytes", "a file of this size is put aside", least=4096)
    keep_files: int = _key(16, "files", "put aside and kept; the oldest go", most=100_000)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where memories last."""

    path: str = _key("{data_dir}/memory.duckdb", "path", "the database; {data_dir} is the data directory")
    memory_limit_bytes: int = _key(256 * MIB, "bytes", "what DuckDB may take", least=32 * MIB)
    min_free_bytes: int = _key(256 * MIB, "bytes", "below so much free space, writes are refused")


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What is searched in memory."""

    memory_bytes: int = _key(1024 * MIB, "bytes", "what all indexes together may take; the least used go first")


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """What turns text into vectors."""

    provider: str = _key(
        "builtin", "name", "builtin, builtin-float, openai, none, or a directory in the Hugging Face layout"
    )
    dimensions: int = _key(0, "numbers", "length of a vector; 0: the model's")
    reembed: bool = _key(default=True, unit="", meaning="after a change of model, re-embed in the background")
    url: str = _key("", "URL", "of openai: the endpoint, up to and with /v1")
    model: str = _key("", "name", "of openai: the model")
    api_key_file: str = _key("", "path", "of openai: a file that holds the key; empty: no key is sent")
    timeout_s: float = _key(10.0, "seconds", "of openai: how long an answer may take", least=0.1, most=3600)


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """What is forgotten when."""

    auto_gc: bool = _key(default=True, unit="", meaning="collect garbage at start")
    delete_grace_days: float = _key(30.0, "days", "a deleted memory can be restored for so long", most=36_525)
    supersede_grace_days: float = _key(
        180.0, "days", "a superseded memory is kept for so long; 0: for ever", most=36_525
    )
    expired_grace_days: float = _key(30.0, "days", "an expired memory is kept for so long", most=36_525)
    max_entries: int = _key(0, "memories", "live ones of one owner; above it the least valuable go; 0: no cap")
    dedup_cosine: float = _key(0.85, "cosine", "above it, statements without a relevant difference are one", most=1)
    dedup_jaccard: float = _key(0.75, "share", "of words; from it, the same of longer statements", most=1)
    supersede_policy: str = _key(
        "supersede", "name", "what is contradicted is superseded, or demoted to confidence 0.3", one_of=POLICIES
    )
    decay: str = _key("gentle", "name", "how confidence fades", one_of=DECAYS)


@dataclass(frozen=True, slots=True)
class EntitiesConfig:
    """Who finds names in statements."""

    spacy_model: str = _key("en_core_web_sm", "name", "spaCy's pipeline: a package or a directory")


@dataclass(frozen=True, slots=True)
class StrategiesConfig:
    """Which finders look when."""

    fast: tuple[str, ...] = _key(("regex",), "names", "before an answer")
    accurate: tuple[str, ...] = _key(("regex", "spacy"), "names", "in the background, as far as they are installed")


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """When the daemon looks after its store by itself: cron expressions; empty: never."""

    timezone: str = _key(
        "local", "name", "of the expressions, and of dates in contexts: local, or an IANA name such as Europe/Berlin"
    )
    enrichment: str = _key("0 2 * * *", "cron", "look again for entities")
    decay: str = _key("0 4 * * *", "cron", "forget what has faded")
    gc: str = _key("30 4 * * *", "cron", "erase what is past its grace")
    compaction: str = _key("0 5 * * 0", "cron", "rewrite the database without what was purged")

    @property
    def zone(self) -> tzinfo | None:
        """The time zone; None: the system's."""
        return None if self.timezone == "local" else ZoneInfo(self.timezone)


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How much goes into a prompt unless the request says."""

    max_memories: int = _key(
        limits.DEFAULT_CONTEXT_MEMORIES,
        "memories",
        "relevant memories in a context",
        least=1,
        most=limits.MAX_CONTEXT_MEMORIES,
    )
    max_tokens: int = _key(
        limits.DEFAULT_CONTEXT_TOKENS, "tokens", "length of a context", least=1, most=limits.MAX_CONTEXT_TOKENS
    )
    date_after_days: float = _key(
        30.0, "days", "what is older is shown with its date, in searches and lists too", most=36_525
    )


@dataclass(frozen=True, slots=True)
class ConversationConfig:
    """How conversations are kept, and what of them goes into a prompt unless the request says."""

    recent_messages: int = _key(
        limits.DEFAULT_RECENT_MESSAGES, "messages", "of a thread, in a prompt", least=1, most=limits.MAX_RECENT_MESSAGES
    )
    max_history: int = _key(100, "messages", "since the last summary; past it older ones leave the prompts; 0: never")
    retain_recent: int = _key(
        20, "messages", "stay in the prompts after a compaction", least=1, most=limits.MAX_RECENT_MESSAGES
    )
    emergency_retain: int = _key(
        4, "messages", "stay after one in an emergency", least=1, most=limits.MAX_RECENT_MESSAGES
    )
    recall_top_k: int = _key(
        limits.DEFAULT_FOUND_MESSAGES,
        "messages",
        "earlier ones that are recalled",
        least=1,
        most=limits.MAX_SEARCH_LIMIT,
    )
    recall_before: int = _key(2, "messages", "shown before one that was found", most=limits.MAX_NEIGHBOURS)
    recall_after: int = _key(1, "messages", "shown after it", most=limits.MAX_NEIGHBOURS)
    session_idle_minutes: float = _key(30.0, "minutes", "of silence that end a session; 0: none do", most=525_600)
    index_bytes: int = _key(512 * MIB, "bytes", "what the indexes of messages may take; the least used go first")
    slow_after: int = _key(20_000, "messages", "wait for their vectors, and appending becomes as slow as embedding")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that the operator decides."""

    daemon: DaemonConfig = DaemonConfig()
    sandbox: SandboxConfig = SandboxConfig()
    shared: SharedConfig = SharedConfig()
    tcp: TcpConfig = TcpConfig()
    audit: AuditConfig = AuditConfig()
    store: StoreConfig = StoreConfig()
    index: IndexConfig = IndexConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    memory: MemoryConfig = MemoryConfig()
    entities: EntitiesConfig = EntitiesConfig()
    strategies: StrategiesConfig = field(default=StrategiesConfig(), metadata={"label": "entities.strategies"})
    schedule: ScheduleConfig = ScheduleConfig()
    context: ContextConfig = ContextConfig()
    conversation: ConversationConfig = ConversationConfig()
    disabled_agents: frozenset[str] = frozenset()
    """Agents whose statements are declined: [agents.NAME.memory] enabled = false."""

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
                )


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration."""

    section: str
    name: str
    value: Any
    default: Any
    unit: str
    meaning: str
    least: float
    most: float
    one_of: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return f"MEMORYD_{self.section.replace('.', '_')}_{self.name}".upper()

    def check(self, value: Any, where: str) -> Any:
        """Return value as the key's type; ConfigError if it is none."""
        kind = type(self.default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = tuple(value)
        if type(value) is not kind:
            raise ConfigError(f"{where}: {self.section}.{self.name} must be {_ARTICLES[kind]}, not {value!r}")
        if kind in {int, float} and not self.least <= value <= self.most:
            raise ConfigError(
                f"{where}: {self.section}.{self.name} is {value}; it must be at least {self.least:g}"
                f" and at most {self.most:g}"
            )
        if self.one_of and value not in self.one_of:
            raise ConfigError(
                f"{where}: {self.section}.{self.name} is {value!r}; it must be one of {', '.join(self.one_of)}"
            )
        return value

    def parse(self, text: str) -> Any:
        """Return the value that an environment variable says."""
        kind = type(self.default)
        if kind is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            return words.get(text.strip().lower(), text)
        if kind is tuple:
            return tuple(item.strip() for item in text.split(",") if item.strip())
        try:
            return kind(text)
        except ValueError:
            return text  # check() says what it must be


_ARTICLES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of names"}


def sections_of() -> list[Field[Any]]:
    """Return the sections of the configuration."""
    return [item for item in fields(Config) if item.name != "disabled_agents"]


def label_of(section: Field[Any]) -> str:
    """Return how a section is called in the file."""
    return str(section.metadata.get("label", section.name))
