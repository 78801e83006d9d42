"""One key of the configuration: its place, unit and meaning, and what it may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memoryd.errors import StartupError
from memoryd.paths import expanded

__all__ = ["ConfigError", "Key", "key_of", "reader_key"]


PATHS = frozenset({"path", "name or path"})  # units of keys that may begin with a home


class ConfigError(StartupError):
    """The configuration cannot be used; the message names every key that is wrong and the way out."""

    def __init__(self, *faults: str) -> None:
        super().__init__(faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults))
        self.faults = faults


def key_of(
    default: Any,
    unit: str,
    meaning: str,
    *,
    least: float = 0,
    most: float = 2**40,
    one_of: tuple[str, ...] = (),
    per_agent: bool = False,
) -> Any:
    """Return a field of a section, with what belongs to its key."""
    metadata = {
        "unit": unit, "meaning": meaning, "least": least, "most": most, "one_of": one_of, "per_agent": per_agent
    }  # fmt: skip
    return field(default=default, metadata=metadata)


def reader_key(meaning: str) -> Any:
    """Return a field that names the model of a reader."""
    return key_of("builtin", "name or path", f"{meaning}: builtin, none, a directory")


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
    per_agent: bool
    """Whether an agent may have its own value: [agents.NAME.SECTION]."""

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
                f"{where}: {self.section}.{self.name} is {value}; it must be at least {_number(self.least)}"
                f" and at most {_number(self.most)}"
            )
        if self.one_of and value not in self.one_of:
            raise ConfigError(
                f"{where}: {self.section}.{self.name} is {value!r}; it must be one of {', '.join(self.one_of)}"
            )
        return self._placed(value, where) if self.unit in PATHS else value

    def _placed(self, path: str, where: str) -> str:
        """Return a path whose `~` is replaced; ConfigError where it is a home that is not known."""
        if not path.startswith("~"):
            return path
        try:
            return str(expanded(path))
        except ValueError as error:
            raise ConfigError(f"{where}: {self.section}.{self.name}: {error}") from None

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


def _number(value: float) -> str:
    """Return a number as a person would write it into the file."""
    return str(int(value)) if value == value // 1 and abs(value) < 10**15 else f"{value:g}"
