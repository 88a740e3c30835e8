"""What is read of a broker's metrics, as plain data: its counters, its gauges and its groups' lags.

The law: counters are told as they stand. What they grow by is for whoever has seen them before.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kafscale.admin.cluster.exposition_reading import Exposition

Place = tuple[str, int]
"""A topic and the number of a partition."""
OTHER: Final = ("", -1)
"""Stands for all partitions that a broker of very many does not tell one by one."""


class Operation(msgspec.Struct, frozen=True):
    """One kind of request to the object store, since the broker started."""

    succeeded: int = 0
    failed: int = 0
    buckets: tuple[tuple[float, int], ...] = ()
    """How many took no longer than so many seconds; the last one has no bound."""

    @property
    def total(self) -> int:
        return self.succeeded + self.failed


class Lag(msgspec.Struct, frozen=True):
    """How many records of a partition a group has yet to read."""

    group: str
    topic: str
    partition: int
    lag: int


class Figures(msgspec.Struct, frozen=True):
    """What one broker measures at one moment."""

    connections: int | None
    error_rate: float | None
    produce_requests: int
    fetch_requests: int
    produce_bytes: dict[Place, int]
    fetch_bytes: dict[Place, int]
    stored_bytes: dict[Place, int]
    operations: dict[str, Operation]
    lags: tuple[Lag, ...]


def figures(told: Exposition) -> Figures:
    """What is of interest among all that a broker tells."""
    connections = told.value("kafscale_active_connections")
    requests = {"Produce": 0, "Fetch": 0}
    for (api,), count in told.samples("kafscale_requests_total", "api"):
        if api in requests:
            requests[api] += int(count)
    return Figures(
        connections=None if connections is None else int(connections),
        error_rate=told.value("kafscale_s3_error_rate"),
        produce_requests=requests["Produce"],
        fetch_requests=requests["Fetch"],
        produce_bytes=_by_place(told, "kafscale_produce_bytes_total"),
        fetch_bytes=_by_place(told, "kafscale_fetch_bytes_total"),
        stored_bytes=_by_place(told, "kafscale_stored_bytes"),
        operations=_operations(told),
        lags=tuple(_lags(told)),
    )


def _by_place(told: Exposition, name: str) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for (topic, partition), value in told.samples(name, "topic", "partition"):
        place = (topic, int(partition)) if partition.isdigit() else OTHER
        found[place] = found.get(place, 0) + int(value)
    return found


def _operations(told: Exposition) -> dict[str, Operation]:
    counts: dict[str, dict[str, int]] = {}
    for (name, status), count in told.samples(
        "kafscale_s3_operations_total", "operation", "status"
    ):
        counts.setdefault(name, {})[status] = int(count)
    buckets: dict[str, list[tuple[float, int]]] = {}
    for (name, bound), count in told.buckets("kafscale_s3_latency_seconds", "operation"):
        buckets.setdefault(name, []).append((float(bound), int(count)))
    return {
        name: Operation(
            succeeded=by_status.get("success", 0),
            failed=by_status.get("error", 0),
            buckets=tuple(buckets.get(name, ())),
        )
        for name, by_status in counts.items()
    }


def _lags(told: Exposition) -> Iterable[Lag]:
    for (group, topic, partition), lag in told.samples(
        "kafscale_consumer_lag", "group", "topic", "partition"
    ):
        if partition.isdigit():
            yield Lag(group, topic, int(partition), int(lag))
