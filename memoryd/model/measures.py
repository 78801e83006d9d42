"""What is measured while the daemon works: how long things take, how often they happen, how many are under way."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

__all__ = ["NO_MEASURES", "Event", "Level", "Measures", "NoMeasures", "Quantity"]


class Quantity(StrEnum):
    """What is measured each time that it happens; the names follow OpenTelemetry where that has one."""

    RPC = "rpc_server_call_duration_seconds"
    """Labels: method, code, door."""
    STORE = "db_client_operation_duration_seconds"
    """Label: what was done with the database."""
    MODEL = "gen_ai_client_operation_duration_seconds"
    """Label: embeddings or chat."""
    SEARCH_STEP = "memoryd_search_step_seconds"
    """Label: embedding, ranking, presentation."""
    COMMIT = "memoryd_writer_commit_seconds"
    BATCH = "memoryd_writer_batch_changes"
    CHECKPOINT = "memoryd_checkpoint_seconds"
    JOB = "memoryd_job_duration_seconds"
    """Label: job."""


class Event(StrEnum):
    """What is counted; labels are of closed sets: never an id, a name, a text."""

    ADDED = "memoryd_adds_total"
    """Label: outcome."""
    LEARNT = "memoryd_learnt_total"
    """Label: outcome."""
    EMPTY_SEARCH = "memoryd_searches_empty_total"
    MASKED = "memoryd_secrets_masked_total"
    REFUSED = "memoryd_refused_total"
    """Label: reason."""
    JOB_RUN = "memoryd_job_runs_total"
    """Labels: job, state."""


class Level(StrEnum):
    """What goes up and down."""

    CALLS = "memoryd_calls_in_flight"
    """Label: door."""


class Measures(Protocol):
    """Where it goes. Callable from every thread."""

    def measure(self, quantity: Quantity, value: float, *labels: str) -> None:
        """Note one value, in seconds unless the name says what else."""

    def count(self, event: Event, *labels: str, number: int = 1) -> None:
        """Note that something happened so many times."""

    def change(self, level: Level, by: int, *labels: str) -> None:
        """Note that so many more are under way, or fewer."""


class NoMeasures:
    """Nothing is measured."""

    def measure(self, quantity: Quantity, value: float, *labels: str) -> None:
        """Do nothing."""

    def count(self, event: Event, *labels: str, number: int = 1) -> None:
        """Do nothing."""

    def change(self, level: Level, by: int, *labels: str) -> None:
        """Do nothing."""


NO_MEASURES = NoMeasures()
