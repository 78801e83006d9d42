"""Where things are for a command: what its options name, else what the configuration says, else the defaults."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path

from memoryd import paths
from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.paths import Places

__all__ = ["config_path", "options_of", "places_of", "settle", "with_places"]

_ADVICE = re.compile(r"(?<=\brun: )memoryd [a-z]+|(?<=\bwith: )memoryd [a-z]+")
_OPTIONS = ("config", "data_dir", "socket")


def config_path(args: argparse.Namespace) -> Path | None:
    """Return the configuration file that is named, else the one that is there; None where there is none."""
    named: Path | None = args.config
    return named or paths.config_file(os.environ)


def places_of(args: argparse.Namespace, config: Config) -> Places:
    """Return where the daemon's files are."""
    data_dir = (args.data_dir or paths.data_dir(os.environ)).absolute()

    def placed(path: str) -> Path:
        return Path(path.replace("{data_dir}", str(data_dir))).absolute()

    socket = args.socket or (Path(config.daemon.socket) if config.daemon.socket else paths.socket_path(os.environ))
    sandboxes = Path(config.sandbox.directory) if config.sandbox.directory else socket.absolute().parent / "sandboxes"
    audit = placed(config.audit.path) if config.audit.path else None
    tokenizers, ledger = placed(config.context.tokenizers), placed(config.store.ledger)
    return Places(placed(config.store.path), socket, sandboxes, audit, tokenizers, ledger)


def settle(args: argparse.Namespace) -> tuple[Config, Places]:
    """Return the configuration and where things are; ConfigError where it cannot be used."""
    config = load_config(config_path(args), os.environ)
    return config, places_of(args, config)


def with_places(text: str, args: argparse.Namespace) -> str:
    """Return a text whose advice, `run: memoryd compact`, names the places that this command was given."""
    return _ADVICE.sub(lambda match: match[0] + options_of(args), text)


def options_of(args: argparse.Namespace) -> str:
    """Return the places that a command was given, as words to follow another command."""
    given = [(name, getattr(args, name, None)) for name in _OPTIONS]
    return "".join(
        f" --{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in given if value is not None
    )
