"""What this store was told to erase, asked before an import brings it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memoryd.domain.ports import Ports
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.scope import Owner
from memoryd.model.times import EPOCH

__all__ = ["ever_erased", "things_of_message"]


async def ever_erased(ports: Ports) -> Callable[[Iterable[ErasedThing]], bool]:
    """Return what tells whether one of some things was ever erased for good; it reads the ledger of purges once."""
    files = ports.store.files
    purged = None if files is None else await files.ever_purged()
    return lambda things: purged is not None and any(purged.has(thing, EPOCH) for thing in things)


def things_of_message(owner: Owner, thread_id: str, message_id: str) -> tuple[ErasedThing, ErasedThing]:
    """Return what would have erased a message: its thread, or it alone."""
    return (
        ErasedThing(ErasedKind.THREAD, owner, thread_id),
        ErasedThing(ErasedKind.MESSAGE, owner, thread_id, message_id),
    )
