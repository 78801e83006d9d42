"""The figures that are kept, by prometheus_client: one child a combination of labels, and never more than so many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from memoryd.metrics.sample import Sample
from memoryd.model.measures import Event, Level, Quantity

__all__ = ["Figures"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
LONG_SECONDS = (0.1, 1.0, 10.0, 60.0, 600.0)
CHANGES = (1, 2, 5, 10, 20, 50, 100)
MOST_CHILDREN: dict[str, int] = {f"{Quantity.RPC} admin": 41, Quantity.RPC: 13, Quantity.JOB: 20}
"""Combinations of labels: a histogram has a series a bucket. Of calls those of each door by itself, so that no caller
of one takes the places of another."""
MOST = 40
OTHER = "other"

QUANTITIES: dict[Quantity, tuple[str, tuple[str, ...], tuple[float, ...]]] = {
    Quantity.RPC: (
        "Duration of a call, from its first byte to its answer.",
        ("rpc_method", "rpc_response_status_code", "door"),
        SECONDS,
    ),
    Quantity.STORE: ("Duration of a piece of work with the database, in its thread.", ("operation",), SECONDS),
    Quantity.MODEL: ("Duration of one pass through a model.", ("operation",), SECONDS),
    Quantity.SEARCH_STEP: ("Duration of a step of a search.", ("step",), SECONDS),
    Quantity.COMMIT: ("Duration of a transaction, until it is on disk.", (), SECONDS),
    Quantity.BATCH: ("Change sets that are written in one transaction.", (), CHANGES),
    Quantity.CHECKPOINT: ("Duration of folding the log into the file.", (), LONG_SECONDS),
    Quantity.JOB: ("Duration of a run of a job.", ("job_name",), LONG_SECONDS),
}
EVENTS: dict[Event, tuple[str, tuple[str, ...]]] = {
    Event.ADDED: ("Statements that were offered by calls, by what became of them.", ("outcome",)),
    Event.LEARNT: ("Statements that were found in messages, by what became of them.", ("outcome",)),
    Event.EMPTY_SEARCH: ("Searches that found nothing above the floor.", ()),
    Event.MASKED: ("Messages in which secrets were masked.", ()),
    Event.REFUSED: ("Calls that were refused, by the reason that the contract names.", ("reason",)),
    Event.JOB_RUN: ("Runs of jobs, by how they ended.", ("job_name", "state")),
}
LEVELS: dict[Level, tuple[str, tuple[str, ...]]] = {
    Level.CALLS: ("Calls that are under way.", ("door",)),
}


class _Now(Collector):
    """What is read when it is asked for."""

    def __init__(self, look: Callable[[], Sequence[Sample]]) -> None:
        self._look = look

    def collect(self) -> Iterator[Any]:
        families: dict[str, Any] = {}
        for sample in self._look():
            family = families.get(sample.name)
            if family is None:
                kind = CounterMetricFamily if sample.name.endswith("_total") else GaugeMetricFamily
                family = kind(sample.name, sample.meaning, labels=[name for name, _ in sample.labels])
                families[sample.name] = family
            family.add_metric([value for _, value in sample.labels], sample.value)
        yield from families.values()


class Figures:
    """Implements `Measures`; its text is for a scraper."""

    def __init__(self, look: Callable[[], Sequence[Sample]]) -> None:
        """`look` returns what is read when it is asked for; it is called in the thread that asks for the text."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._of: dict[str, Any] = {}
        for quantity, (meaning, labels, buckets) in QUANTITIES.items():
            self._of[quantity] = Histogram(quantity, meaning, labels, buckets=buckets, registry=self._registry)
        for event, (meaning, labels) in EVENTS.items():
            self._of[event] = Counter(event, meaning, labels, registry=self._registry)
        for level, (meaning, labels) in LEVELS.items():
            self._of[level] = Gauge(level, meaning, labels, registry=self._registry)
        self._children: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._counts: dict[str, int] = {}
        ProcessCollector(namespace="memoryd", registry=self._registry)  # node exporter has its own `process_`
        self._registry.register(_Now(look))

    def measure(self, quantity: Quantity, value: float, *labels: str) -> None:
        """Note one value; see Measures."""
        self._child(quantity, labels).observe(value)

    def count(self, event: Event, *labels: str, number: int = 1) -> None:
        """Note that something happened; see Measures."""
        self._child(event, labels).inc(number)

    def change(self, level: Level, by: int, *labels: str) -> None:
        """Note that more or fewer are under way; see Measures."""
        self._child(level, labels).inc(by)

    def expect(self, name: Quantity | Event | Level, *labels: str) -> None:
        """Keep a place for a series, which begins with nothing."""
        self._child(name, labels)

    def text(self) -> bytes:
        """Return all figures in the text format of Prometheus; it takes some milliseconds: not on the event loop."""
        return generate_latest(self._registry)

    def _child(self, name: Quantity | Event | Level, labels: tuple[str, ...]) -> Any:
        child = self._children.get((name, labels))
        return self._new_child(name, labels) if child is None else child

    def _new_child(self, name: Quantity | Event | Level, labels: tuple[str, ...]) -> Any:
        of = self._of[name]
        if not labels:
            self._children[name, labels] = of
            return of
        counted = f"{name} {labels[2]}" if name == Quantity.RPC else str(name)
        if self._counts.get(counted, 0) >= MOST_CHILDREN.get(counted, MOST_CHILDREN.get(name, MOST)):
            return of.labels(*_merged(name, labels))  # not remembered: what is made up takes no memory
        self._counts[counted] = self._counts.get(counted, 0) + 1
        child = self._children[name, labels] = of.labels(*labels)
        return child


def _merged(name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of what is one too many."""
    if name == Quantity.RPC:
        return OTHER, "OK" if labels[1] == "OK" else OTHER, labels[2]
    return (OTHER,) * len(labels)
