"""How much free space a commit needs: what takes back goes on longest."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.model.change import ChangeSet

__all__ = ["LEAST_FREE_BYTES", "needed_bytes"]

LEAST_FREE_BYTES = 1 << 20  # without it nothing is written, not even a delete


def needed_bytes(commits: Sequence[Sequence[ChangeSet]], min_free_bytes: int) -> int:
    """Return how many bytes must be free for commits to be written together."""
    changes = [change for together in commits for change in together]
    if any(_grows(change) or any(grant.revoke_time is None for grant in change.grants) for change in changes):
        return min_free_bytes
    if all(any(map(_takes_back, together)) for together in commits):
        return min(min_free_bytes, LEAST_FREE_BYTES)
    return min_free_bytes // 4  # what is changed goes on longer than what is added


def _grows(change: ChangeSet) -> bool:
    """Whether a change adds texts or vectors."""
    talk = change.conversation
    told = talk is not None and (talk.messages or talk.embeddings or talk.threads or talk.working_memory)
    return bool(change.inserts or change.embeddings or told)


def _takes_back(change: ChangeSet) -> bool:
    """Whether a change takes something back: memories, messages, or what a grant allows."""
    taken = change.purges or change.grants or change.forget_grants or change.forget_entities
    talk = change.conversation
    said = talk is not None and (talk.purge_messages or talk.purge_threads)
    return bool(taken or said) or any(entry.memory.delete_time is not None for entry in change.updates)
