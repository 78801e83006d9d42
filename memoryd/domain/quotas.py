"""The quota of bytes that a grant may store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoryd.errors import LimitExceeded
from memoryd.model.caller import Caller
from memoryd.model.grant import GrantText
from memoryd.store.base import Store

__all__ = ["check_quota", "check_texts", "quota_lock"]


def quota_lock(caller: Caller) -> list[tuple[str, str]]:
    """Return what is held while a quota of bytes is looked at and used."""
    return [("grant", caller.grant_id)] if caller.quota.stored_bytes else []


async def check_quota(size: int, text: str, caller: Caller, store: Store, now: datetime) -> None:
    """Raise LimitExceeded, which says also `text`, where so many bytes more are past the quota of a grant."""
    quota = caller.quota.stored_bytes
    if not quota or size <= 0:
        return
    used = await store.grants.usage(caller.grant_id, now.date())
    if used.stored_bytes + size > quota:
        raise LimitExceeded(f"the grant stores {used.stored_bytes} of {quota} bytes, and {text}", limit="stored_bytes")


async def check_texts(
    texts: Sequence[GrantText], before: Sequence[GrantText], caller: Caller, store: Store, now: datetime
) -> None:
    """Raise LimitExceeded where the texts of a grant grow past its quota."""
    grown = sum(grant.size for grant in texts if grant.grant_id == caller.grant_id)
    grown -= sum(grant.size for grant in before if grant.grant_id == caller.grant_id)
    await check_quota(grown, f"this text needs {grown} more", caller, store, now)
