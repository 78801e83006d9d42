"""Reading the configuration: the file, then the environment, each value checked."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from memoryd.daemon.config import CRON_FIELDS, MAX_PORT, Config, label_of, sections_of, with_values
from memoryd.daemon.config_key import ConfigError, Key

__all__ = ["check_schedule", "load_config"]

_OfAgents = dict[str, dict[tuple[str, str], Any]]


def _tables(raw: dict[str, Any], known: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the sections of a file, those within others too: [entities.strategies]."""
    for name, content in raw.items():
        if not isinstance(content, dict) or name == "agents":
            yield name, content
            continue
        inner = {key: value for key, value in content.items() if f"{name}.{key}" in known}
        yield name, {key: value for key, value in content.items() if key not in inner}
        yield from ((f"{name}.{key}", value) for key, value in inner.items())


def _of_agents(path: Path | None, agents: Any, keys: Mapping[tuple[str, str], Key]) -> _OfAgents:
    """Return by agent what a file says of it, checked; ConfigError for what an agent cannot have of its own."""
    own = {place: key for place, key in keys.items() if key.per_agent}
    sections = list(dict.fromkeys(section for section, _ in own))
    found: _OfAgents = {}
    if not isinstance(agents, dict):
        raise ConfigError(f"{path}: agents must be sections, written [agents.NAME.memory]")
    for agent, content in agents.items():
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: agents.{agent} must have sections, written [agents.{agent}.memory]")
        for section, values in content.items():
            where = f"agents.{agent}.{section}"
            if section not in sections:
                raise ConfigError(f"{path}: unknown section [{where}]{_nearest(section, sections)}")
            if not isinstance(values, dict):
                raise ConfigError(f"{path}: {where} must be a section, written [{where}]")
            for name, value in values.items():
                key = own.get((section, name))
                if key is None:
                    known = [one for of, one in own if of == section]
                    raise ConfigError(f"{path}: unknown key {where}.{name}{_nearest(name, known)}")
                found.setdefault(agent, {})[section, name] = key.check(value, f"{path}: agents.{agent}")
    return found


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1, 0.5)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"


def load_config(path: Path | None, env: Mapping[str, str]) -> Config:
    """Return the configuration of a file (None: defaults), overridden by the environment; ConfigError if unusable."""
    config = Config()
    keys = {(key.section, key.name): key for key in config.entries()}
    found: dict[tuple[str, str], Any] = {}
    for section, content in _tables(_read(path), [label_of(item) for item in sections_of()]):
        if section == "agents":
            config = replace(config, agents=_of_agents(path, content, keys))
        else:
            found |= _of_section(section, content, keys, path)
    found |= _of_environment(env, keys)
    config = with_values(config, found)
    check_schedule(config)
    _check_doors(config)
    if not config.store.path.strip() or "\0" in config.store.path:
        raise ConfigError("store.path is empty; name the database file")
    return config


def _of_section(
    section: str, content: Any, keys: Mapping[tuple[str, str], Key], path: Path | None
) -> dict[tuple[str, str], Any]:
    """Return the values of a section of the file, checked."""
    sections = [label_of(item) for item in sections_of()]
    if section not in sections:
        raise ConfigError(f"{path}: unknown section [{section}]{_nearest(section, [*sections, 'agents'])}")
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: {section} must be a section, written [{section}]")
    found = {}
    for name, value in content.items():
        key = keys.get((section, name))
        if key is None:
            known = [item.name for item in keys.values() if item.section == section]
            raise ConfigError(f"{path}: unknown key {section}.{name}{_nearest(name, known)}")
        found[section, name] = key.check(value, str(path))
    return found


def _of_environment(env: Mapping[str, str], keys: Mapping[tuple[str, str], Key]) -> dict[tuple[str, str], Any]:
    """Return the values that the environment sets, checked."""
    variables = {key.variable: (place, key) for place, key in keys.items()}
    prefixes = tuple(f"MEMORYD_{label_of(item).replace('.', '_')}_".upper() for item in sections_of())
    found = {}
    for variable, text in env.items():
        if variable in variables:
            place, key = variables[variable]
            found[place] = key.check(key.parse(text), variable)
        elif variable.startswith(prefixes):
            raise ConfigError(f"the environment sets {variable}, which is no key{_nearest(variable, list(variables))}")
    return found


def _check_doors(config: Config) -> None:
    """Raise ConfigError for a shared socket or a TCP door that cannot be opened so."""
    if config.shared.socket and not config.shared.socket.startswith("/"):
        raise ConfigError(f"shared.socket is {config.shared.socket!r}; name an absolute path")
    tcp = config.tcp
    if not tcp.listen:
        return
    host, _, port = tcp.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise ConfigError(f"tcp.listen is {tcp.listen!r}; write host:port, for example 127.0.0.1:7443")
    if not tcp.certificate_file or not tcp.key_file:
        raise ConfigError("tcp.listen needs TLS: name tcp.certificate_file and tcp.key_file")


def check_schedule(config: Config) -> None:
    """Raise ConfigError for an expression or a time zone that is none."""
    zone = config.schedule.timezone
    if zone != "local" and zone not in available_timezones():
        raise ConfigError(f"schedule.timezone is {zone!r}; write local, or an IANA name such as Europe/Berlin")
    for item in fields(config.schedule):
        expression = getattr(config.schedule, item.name)
        if item.name != "timezone" and expression and len(expression.split()) != CRON_FIELDS:
            raise ConfigError(
                f"schedule.{item.name} is {expression!r}; write five fields, as in '0 4 * * *', or '' for never"
            )


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
