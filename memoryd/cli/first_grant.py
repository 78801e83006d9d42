"""The first grant, as `memoryd init` makes it: its token is in a file for this user alone, or there is no grant."""

from __future__ import annotations

import argparse
import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from memoryd.errors import InvalidArgument, TimedOut, Unauthenticated, Unavailable

__all__ = ["FirstGrant"]

LABEL = "first grant, of memoryd init"
LOOK_S = 0.1  # between two looks for a daemon that is being started


class Steps(Protocol):
    """What notes the steps of a setup."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is made."""

    def note(self, what: str, where: object, became: str) -> None:
        """Note a step."""


class FirstGrant:
    """The first grant of a setup, and the file of its token."""

    def __init__(
        self,
        setup: Steps,
        client: Callable[[argparse.Namespace], Any],
        args: argparse.Namespace,
        token_file: Path,
        user: str,
    ) -> None:
        """Note the steps in a setup; ask the daemon by a client."""
        self._steps = setup
        self._client = client
        self._args = args
        self.token_file = token_file
        self._user = user

    def settle(self, wait_s: float) -> bool:
        """Make the grant, unless its token is there and counts; return False where no daemon answers in time."""
        fault = _fault_of(self.token_file)
        if fault:
            self._note(f"{self.token_file} {fault}; remove it, and run memoryd init again", "waits")
            return True
        try:
            with self._connected(wait_s) as host:
                if os.path.lexists(self.token_file):
                    self._look_at(host)
                elif self._steps.dry_run:
                    self._note(self.token_file, "made")
                else:
                    self._issue(host)
        except (Unavailable, TimedOut):
            there = os.path.lexists(self.token_file)
            self._note(self.token_file if there else "needs the daemon", "there" if there else "waits")
            return there
        return True

    def _connected(self, wait_s: float) -> Any:
        """Return a client of the daemon once that answers; Unavailable where it does not in time."""
        end = time.monotonic() + wait_s
        while True:
            with ExitStack() as held:
                try:
                    host = held.enter_context(self._client(self._args))
                    host.server_info()
                except (Unavailable, TimedOut):
                    if time.monotonic() >= end:
                        raise
                else:
                    held.pop_all()
                    return host
            time.sleep(LOOK_S)

    def _note(self, where: object, became: str) -> None:
        self._steps.note("token of the first grant", where, became)

    def _look_at(self, host: Any) -> None:
        """Say whether the token that is there counts, and for this user."""
        try:
            found = host.inspect_token(self.token_file.read_text(encoding="latin-1").strip())
        except (InvalidArgument, Unauthenticated):
            self._note(f"{self.token_file} holds no token; remove it, and run memoryd init again", "waits")
            return
        whose = found.grant.user_id if found.grant is not None else ""
        if found.valid and whose == self._user:
            self._note(self.token_file, "there")
            return
        why = f"is of user {whose!r}" if found.valid else f"counts no longer ({found.refusal})"
        self._note(f"{self.token_file} {why}; remove it, and run memoryd init again", "waits")

    def _issue(self, host: Any) -> None:
        """Make the grant once its file is sure to be written; a grant whose token no one has is taken back."""
        from memory_client import GrantSpec, check_permissions

        spec = GrantSpec(user_id=self._user, permissions=check_permissions(["full"]), label=LABEL)
        self.token_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:  # it is closed below
            made = tempfile.NamedTemporaryFile("w", dir=self.token_file.parent, prefix=".token-")  # noqa: SIM115  0600
        except OSError as error:
            raise InvalidArgument(
                f"{self.token_file.parent}: {error.strerror}; the token needs it", field="config"
            ) from None
        with made as file:
            try:
                issued = host.issue_token(spec)
            except TimedOut:
                lost = f"it may be there without its token: memoryd grant list, then revoke what is called {LABEL!r}"
                self._note(lost, "waits")
                return
            try:
                file.write(f"{issued.token}\n")
                file.flush()
                os.fsync(file.fileno())
                os.link(file.name, self.token_file)
            except OSError as error:
                host.revoke_grant(issued.grant.id)
                if not isinstance(error, FileExistsError):
                    raise
                self._note(self.token_file, "there")  # another one was faster
                return
        self._note(self.token_file, "made")


def _fault_of(path: Path) -> str:
    """Return in words why a file is no token of this user's alone; "" where it is one, or is not there."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return ""
    if not stat.S_ISREG(state.st_mode):
        return "is no file"
    if state.st_uid != os.geteuid():
        return "is another user's"
    return "may be read by others" if state.st_mode & 0o077 else ""
