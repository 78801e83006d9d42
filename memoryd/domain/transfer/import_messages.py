"""Importing messages of a conversation of another system: with their ids and times, less trusted than the host."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.conversation.append import append
from memoryd.domain.conversation.threads import ThreadKey, is_enabled
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.erased import ever_erased, things_of_message
from memoryd.errors import Conflict, InvalidArgument, in_part
from memoryd.model.caller import Caller
from memoryd.model.imported import ImportOutcome, ImportReport, ImportResult
from memoryd.model.message_draft import MessageDraft
from memoryd.model.receipt import Rejection
from memoryd.model.trust import Trust
from memoryd.model.validation import check_batch
from memoryd.store.conversations import MessageSelector

__all__ = ["import_messages"]

ATTEMPTS = 3  # where others import the same
DISABLED = ImportResult(ImportOutcome.REJECTED, rejection=Rejection.DISABLED.value)


async def import_messages(
    key: ThreadKey,
    drafts: Sequence[MessageDraft],
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    dry_run: bool = False,
) -> ImportReport:
    """Store messages at the end of a thread, or tell what would become of them; see ImportMessages in the contract."""
    caller = replace(caller, trust=Trust.IMPORTED)
    _check(drafts, now)
    if not is_enabled(caller, ports.policy):
        return ImportReport((DISABLED,) * len(drafts), dry_run)
    for _ in range(ATTEMPTS):
        with contextlib.suppress(Conflict):  # another call has stored one of them meanwhile, with another text
            return await _once(key, drafts, caller, ports, now, dry_run=dry_run)
    return await _once(key, drafts, caller, ports, now, dry_run=dry_run)


async def _once(
    key: ThreadKey, drafts: Sequence[MessageDraft], caller: Caller, ports: Ports, now: datetime, *, dry_run: bool
) -> ImportReport:
    owner = key.owner(caller)
    named = MessageSelector(owner=owner, thread_id=key.thread_id, ids={draft.id for draft in drafts})
    known = {message.id: message for message in await ports.store.conversations.messages(named)}
    is_erased = await ever_erased(ports) if len(known) < len(drafts) else None
    results = {}
    for draft in drafts:
        there = known.get(draft.id)
        if there is not None:
            is_same = there.masked or draft.says_the_same(there)
            results[draft.id] = ImportResult(ImportOutcome.KNOWN if is_same else ImportOutcome.KEPT, draft.id)
        elif is_erased is not None and is_erased(things_of_message(owner, key.thread_id, draft, now)):
            results[draft.id] = ImportResult(ImportOutcome.ERASED)
    new = [draft for draft in drafts if draft.id not in results]
    appended = await append(key, new, caller, ports, now=now, skip_existing=True, dry_run=dry_run) if new else None
    done = {message.id: message for message in appended.messages} if appended is not None else {}
    for draft in new:
        message = done.get(draft.id)
        outcome = ImportOutcome.KNOWN if message is not None and message.existed else ImportOutcome.STORED
        results[draft.id] = ImportResult(outcome, draft.id, masked=message is not None and message.masked)
    return ImportReport(tuple(results[draft.id] for draft in drafts), dry_run)


def _check(drafts: Sequence[MessageDraft], now: datetime) -> None:
    """Check a call as a whole; InvalidArgument or LimitExceeded names what is wrong."""
    check_batch(len(drafts), "messages", "import")
    seen: set[str] = set()
    for n, draft in enumerate(drafts):
        with in_part(f"messages[{n}]"):
            if not draft.id:
                raise InvalidArgument(
                    "id is empty; give each message the id that it has where it comes from", field="id"
                )
            if draft.id in seen:
                raise InvalidArgument("id comes twice", field="id")
            if draft.create_time is not None and draft.create_time > now:
                raise InvalidArgument("create_time is in the future", field="create_time")
        seen.add(draft.id)
