"""Reading the configuration: the file, then the environment, each value checked."""

from __future__ import annotations

import contextlib
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from memoryd.daemon.config import CRON_FIELDS, MAX_PORT, Config, label_of, sections_of, with_values
from memoryd.daemon.config_key import ConfigError, Key

__all__ = ["check_schedule", "load_config", "read_config"]

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


def _of_agents(path: Path | None, agents: Any, keys: Mapping[tuple[str, str], Key], faults: list[str]) -> _OfAgents:
    """Return by agent what a file says of it and is right; `faults` gets what an agent cannot have of its own."""
    own = {place: key for place, key in keys.items() if key.per_agent}
    sections = list(dict.fromkeys(section for section, _ in own))
    found: _OfAgents = {}
    if not isinstance(agents, dict):
        faults.append(f"{path}: agents must be sections, written [agents.NAME.memory]")
        return found
    for agent, content in agents.items():
        if not isinstance(content, dict):
            faults.append(f"{path}: agents.{agent} must have sections, written [agents.{agent}.memory]")
            continue
        for section, values in content.items():
            where = f"agents.{agent}.{section}"
            if section not in sections:
                faults.append(f"{path}: unknown section [{where}]{_nearest(section, sections)}")
            elif not isinstance(values, dict):
                faults.append(f"{path}: {where} must be a section, written [{where}]")
            else:
                unknown = f"{path}: unknown key {where}"
                checked = _checked(values, section, own, f"{path}: agents.{agent}", unknown, faults)
                if checked:
                    found.setdefault(agent, {}).update(checked)
    return found


def _checked(
    values: Mapping[str, Any],
    section: str,
    keys: Mapping[tuple[str, str], Key],
    where: str,
    unknown: str,
    faults: list[str],
) -> dict[tuple[str, str], Any]:
    """Return the values of a section that are right."""
    found = {}
    for name, value in values.items():
        key = keys.get((section, name))
        if key is None:
            known = [one for of, one in keys if of == section]
            faults.append(f"{unknown}.{name}{_nearest(name, known)}")
            continue
        with _noting(faults):
            found[section, name] = key.check(value, where)
    return found


@contextlib.contextmanager
def _noting(faults: list[str]) -> Iterator[None]:
    """Go on after a fault, which is noted."""
    try:
        yield
    except ConfigError as error:
        faults.extend(error.faults)


OURS = "MEMORYD_"
ALIKE = 0.9  # of two names of variables, by difflib: one is a slip of the other; others that begin so are let be


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1, 0.5)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"


def load_config(path: Path | None, env: Mapping[str, str]) -> Config:
    """Return the configuration of a file (None: defaults), overridden by the environment; ConfigError if unusable."""
    config, faults = read_config(path, env)
    if faults:
        raise ConfigError(*faults)
    return config


def read_config(path: Path | None, env: Mapping[str, str]) -> tuple[Config, list[str]]:
    """Return the configuration with the values that are right, and all that is wrong, each named with its key."""
    config = Config()
    faults: list[str] = []
    keys = {(key.section, key.name): key for key in config.entries()}
    values: dict[tuple[str, str], Any] = {}
    raw: dict[str, Any] = {}
    with _noting(faults):
        raw = _read(path)
    for section, content in _tables(raw, [label_of(item) for item in sections_of()]):
        if section == "agents":
            config = replace(config, agents=_of_agents(path, content, keys, faults))
        else:
            values |= _of_section(section, content, keys, path, faults)
    values |= _of_environment(env, keys, faults)
    config = with_values(config, values)
    for check, section in (
        (check_schedule, "schedule"),
        (_check_doors, "tcp"),
        (_check_store, "store"),
        (_check_backup, "backup"),
    ):
        try:
            check(config)
        except ConfigError as error:
            faults.extend(error.faults)
            config = _without(config, section)  # the rest can be looked at
    return config, faults


def _without(config: Config, section: str) -> Config:
    """Return a configuration with the defaults where a section is of no use; of the schedule its time zone alone."""
    default = getattr(Config(), section)
    if section == "schedule":
        default = replace(config.schedule, timezone=default.timezone)
    return replace(config, **{section: default})


def _of_section(
    section: str, content: Any, keys: Mapping[tuple[str, str], Key], path: Path | None, faults: list[str]
) -> dict[tuple[str, str], Any]:
    """Return the values of a section of the file that are right."""
    sections = [label_of(item) for item in sections_of()]
    if section not in sections:
        faults.append(f"{path}: unknown section [{section}]{_nearest(section, [*sections, 'agents'])}")
        return {}
    if not isinstance(content, dict):
        faults.append(f"{path}: {section} must be a section, written [{section}]")
        return {}
    return _checked(content, section, keys, str(path), f"{path}: unknown key {section}", faults)


def _of_environment(
    env: Mapping[str, str], keys: Mapping[tuple[str, str], Key], faults: list[str]
) -> dict[tuple[str, str], Any]:
    """Return the values that the environment sets and are right."""
    variables = {key.variable: (place, key) for place, key in keys.items()}
    prefixes = tuple(f"MEMORYD_{label_of(item).replace('.', '_')}_".upper() for item in sections_of())
    values = {}
    for variable, text in env.items():
        if variable in variables:
            place, key = variables[variable]
            with _noting(faults):
                values[place] = key.check(key.parse(text), variable)
        elif variable.startswith(prefixes) or (
            variable.startswith(OURS) and difflib.get_close_matches(variable, variables, 1, ALIKE)
        ):
            faults.append(f"the environment sets {variable}, which is no key{_nearest(variable, list(variables))}")
    return values


def _check_store(config: Config) -> None:
    if not config.store.path.strip() or "\0" in config.store.path:
        raise ConfigError("store.path is empty; name the database file")
    if not config.store.ledger.strip() or "\0" in config.store.ledger:
        raise ConfigError("store.ledger is empty; name the folder of the ledger of purges")
    if config.store.engine == "duckdb" and config.store.dsn:
        raise ConfigError('store.dsn is set and store.engine is "duckdb"; set store.engine = "postgres"')
    if config.store.engine == "postgres" and not config.store.dsn:
        raise ConfigError('store.engine is "postgres" and store.dsn is empty; write host=… dbname=… user=…')
    if re.search(r"\bpassword\s*=|://[^/@]*:[^/@]*@", config.store.dsn):
        raise ConfigError("store.dsn holds a password, which would stand in what is printed; name store.password_file")
    if config.store.engine == "postgres" and config.backup.directory:
        raise ConfigError("backup.directory is for DuckDB; a server has backups of its own: docs/postgres.md")


def _check_backup(config: Config) -> None:
    if config.backup.directory and not config.backup.directory.startswith("/"):
        raise ConfigError(f"backup.directory is {config.backup.directory!r}; name an absolute path")
    if config.backup.encrypt_recipients_file and not config.backup.directory:
        raise ConfigError("backup.encrypt_recipients_file is set and backup.directory is not: there are no backups")


def _check_doors(config: Config) -> None:
    """Raise ConfigError for a shared socket or a TCP door that cannot be opened so."""
    faults = []
    if config.shared.socket and not config.shared.socket.startswith("/"):
        faults.append(f"shared.socket is {config.shared.socket!r}; name an absolute path")
    tcp = config.tcp
    if tcp.listen:
        host, _, port = tcp.listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > MAX_PORT:
            faults.append(f"tcp.listen is {tcp.listen!r}; write host:port, for example 127.0.0.1:7443")
        if not tcp.certificate_file or not tcp.key_file:
            faults.append("tcp.listen needs TLS: name tcp.certificate_file and tcp.key_file")
    if faults:
        raise ConfigError(*faults)


def check_schedule(config: Config) -> None:
    """Raise ConfigError for an expression or a time zone that is none."""
    faults = []
    zone = config.schedule.timezone
    if zone != "local" and zone not in available_timezones():
        faults.append(f"schedule.timezone is {zone!r}; write local, or an IANA name such as Europe/Berlin")
    for item in fields(config.schedule):
        expression = getattr(config.schedule, item.name)
        if item.name != "timezone" and expression and len(expression.split()) != CRON_FIELDS:
            faults.append(
                f"schedule.{item.name} is {expression!r}; write five fields, as in '0 4 * * *', or '' for never"
            )
    if faults:
        raise ConfigError(*faults)


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
