"""Work in the background, runs of jobs and proposals as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memoryd.model.learnt import Proposal
from memoryd.model.memory import Kind
from memoryd.model.scope import Owner, Scope
from memoryd.model.times import from_us, to_us
from memoryd.model.trust import Trust
from memoryd.model.work import Run, RunState, Work, WorkState
from memoryd.store import rows
from memoryd.store.conversation_rows import owner_columns

__all__ = [
    "PROPOSAL_COLUMNS", "RUN_COLUMNS", "WORK_COLUMNS", "proposal_of", "proposal_row", "run_of", "run_row",
    "work_details", "work_of",
]  # fmt: skip

WORK_COLUMNS = "kind, agent_id, user_id, chat_id, thread_id, state, due_time, seq, details"
RUN_COLUMNS = "id, job, state, start_time, details"
PROPOSAL_COLUMNS = "id, agent_id, user_id, chat_id, thread_id, message_ids, content, create_time, details"
_TIMES = ("event_time", "expire_time")
_TEXTS = ("session_id", "category", "confidence", "speaker")
_DOORS = ("grant_id", "author")


def work_details(work: Work) -> str:
    """Return what no query compares of a piece of work, as its column holds it."""
    return json.dumps({"attempts": work.attempts, "error": work.error})


def work_of(row: Sequence[Any]) -> Work:
    """Return the work of a row: WORK_COLUMNS."""
    kind, agent_id, user_id, chat_id, thread_id, state, due_time, seq, details = row
    values = json.loads(details)
    return Work(
        kind=kind,
        owner=Owner(agent_id, Scope(user_id=user_id, chat_id=chat_id)),
        thread_id=thread_id,
        seq=int(seq),
        state=WorkState(state),
        due_time=rows.aware(due_time),
        attempts=values["attempts"],
        error=values["error"],
    )


def run_of(row: Sequence[Any]) -> Run:
    """Return the run of a row: RUN_COLUMNS."""
    run_id, job, state, start_time, details = row
    values = json.loads(details)
    end_time = values.pop("end_time")
    return Run(
        id=run_id,
        job=job,
        state=RunState(state),
        start_time=rows.aware(start_time),
        end_time=None if end_time is None else from_us(end_time),
        **values,
    )


def run_row(run: Run) -> list[Any]:
    """Return a run as a row: RUN_COLUMNS."""
    details = {
        "end_time": None if run.end_time is None else to_us(run.end_time), "trigger": run.trigger,
        "dry_run": run.dry_run, "done_count": run.done_count, "total_count": run.total_count,
        "counts": dict(run.counts), "error": run.error, "stop_requested": run.stop_requested,
    }  # fmt: skip
    return [run.id, run.job, run.state.value, rows.naive(run.start_time), json.dumps(details)]


def proposal_of(row: Sequence[Any]) -> Proposal:
    """Return the proposal of a row: PROPOSAL_COLUMNS."""
    one_id, agent_id, user_id, chat_id, thread_id, message_ids, content, create_time, details = row
    values = json.loads(details)
    return Proposal(
        id=one_id,
        agent_id=agent_id,
        scope=Scope(user_id=user_id, chat_id=chat_id),
        thread_id=thread_id,
        message_ids=tuple(json.loads(message_ids)),
        content=content,
        create_time=rows.aware(create_time),
        kind=Kind(values["kind"]),
        trust=Trust(values["trust"]),
        subjects=tuple(values["subjects"]),
        tags=tuple(values["tags"]),
        metadata=values["metadata"],
        **_values(values),
    )


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: None if values[name] is None else from_us(values[name]) for name in _TIMES}
    doors = {name: values.get(name, "") for name in _DOORS}  # those of before did not say
    return {**{name: values[name] for name in _TEXTS}, **times, **doors}


def proposal_row(proposal: Proposal) -> list[Any]:
    """Return a proposal as a row: PROPOSAL_COLUMNS."""
    details: dict[str, Any] = {name: getattr(proposal, name) for name in (*_TEXTS, *_DOORS)}
    details |= {name: None if (time := getattr(proposal, name)) is None else to_us(time) for name in _TIMES}
    details |= {"kind": proposal.kind.value, "trust": proposal.trust.value, "metadata": dict(proposal.metadata)}
    details |= {"subjects": list(proposal.subjects), "tags": list(proposal.tags)}
    owner = owner_columns(proposal.agent_id, proposal.scope)
    return [
        proposal.id, owner["agent_id"], owner["user_id"], owner["chat_id"], proposal.thread_id,
        json.dumps(proposal.message_ids), proposal.content, rows.naive(proposal.create_time),
        json.dumps(details, ensure_ascii=False),
    ]  # fmt: skip
