"""
A sandbox of the bare kernel: another uid in mount and user namespaces of its own, with nothing but one directory.

The process that is caged has imported all that it needs before: afterwards it may read hardly anything.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

UID = 65534
MOUNT = "/run/memory"
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [text.encode() if text is not None else None for text in (source, target, kind)]
    _check(_libc.mount(*words, flags, data.encode()))


def enter(directory: str) -> None:
    """Become nobody, who sees `directory` read-only at MOUNT, and then root of a user namespace that owns nothing."""
    _check(_libc.unshare(CLONE_NEWNS))
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    held = os.open(directory, os.O_PATH)
    _mount("none", "/run", "tmpfs", 0, "mode=755")
    os.mkdir(MOUNT)
    _mount(f"/proc/self/fd/{held}", MOUNT, None, MS_BIND)
    _mount("none", MOUNT, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.close(held)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # or its own /proc/self would be root's
    _check(_libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {UID} 1")
    Path("/proc/self/gid_map").write_text(f"0 {UID} 1")
    os.environ.clear()
    os.environ["HOME"] = "/"


def why_not() -> str:
    """Return why a process cannot be caged here; empty if it can."""
    if os.geteuid() != 0:
        return "needs root, to become another user"
    code = f"from tests.attack.cage import enter; enter({str(Path.cwd())!r})"
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else "needs mount and user namespaces"
