"""Sends metrics samples of the broker to the operator.

Invariants: whatever happens to the operator, the broker continues to serve: nothing is raised here,
little CPU is used, and only changes are logged. An operator that vanished is detected, because
every stream is short and has to be acknowledged in time. After a failure a single sample probes the
operator. The connection to an operator that accepts samples is kept, because only the leader of
several operators at one address accepts them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Final

from kafscale.aio.backoff import Backoff
from kafscale.broker.services import Services
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import BROKER_METRICS, Metrics

logger = get_logger(__name__)

SAMPLE_SECONDS: Final = 5.0
STREAM_SAMPLES: Final = 12
"""How many samples are sent before the operator has to acknowledge them."""
ACK_SECONDS_MAX: Final = 10.0
PAUSE_SECONDS_MIN: Final = 1.0
PAUSE_SECONDS_MAX: Final = 5.0

SENT: Final = frozenset(
    {
        "kafscale_active_connections",
        "kafscale_idle_seconds",
        "kafscale_broker_uptime_seconds",
        "kafscale_produce_requests_per_second",
        "kafscale_fetch_rps",
        "kafscale_owned_partitions",
        "kafscale_owned_shards",
        "kafscale_controller",
        "kafscale_lease_valid",
        "kafscale_unflushed_bytes",
        "kafscale_tail_bytes",
        "kafscale_wal_objects",
        "kafscale_cache_size_bytes",
        "kafscale_s3_error_rate",
        "kafscale_requests_total",
        "kafscale_produce_bytes_total",
        "kafscale_fetch_bytes_total",
        "kafscale_connections_refused_total",
        "kafscale_wal_bytes_total",
        "kafscale_segment_bytes_rolled_total",
    }
)
"""The metrics that are sent, under their Prometheus names; without labels, as totals of this
broker.
"""

_SENT: Final = tuple(each for each in BROKER_METRICS if each.name in SENT)
assert len(_SENT) == len(SENT), "all sent metrics are declared"

Send = Callable[[AsyncIterator[MetricsSample]], Awaitable[Ack]]
"""Returns when the samples have ended and are acknowledged."""
Connect = Callable[[], AbstractAsyncContextManager[Send]]


async def report(services: Services, random: Random) -> None:
    """Send samples until cancelled; returns at once if no operator is configured."""
    control, broker_id = services.config.control, services.node_id
    address = control.operator_address
    if not address:
        return

    @asynccontextmanager
    async def connect() -> AsyncIterator[Send]:
        async with ControlClient(address, control.tls.as_client()) as operator:
            yield operator.send_metrics

    def measure() -> MetricsSample:
        return sample(services.metrics, services.cluster_id, broker_id, services.clock())

    await Reporter(connect, measure, random).run()


def sample(metrics: Metrics, cluster_id: str, broker_id: int, now_ms: int) -> MetricsSample:
    """The current metrics of a broker."""
    result = MetricsSample(cluster_id=cluster_id, broker_id=str(broker_id), timestamp_ms=now_ms)
    for declared in _SENT:
        values = result.counters if declared.type == "counter" else result.gauges
        values[declared.name] = sum(
            value for _, value in declared.read(metrics) if isinstance(value, int | float)
        )
    return result


class Reporter:
    """Sends samples to the operator."""

    def __init__(
        self, connect: Connect, measure: Callable[[], MetricsSample], random: Random
    ) -> None:
        self._connect = connect
        self._measure = measure
        self._backoff = Backoff(
            random, first_seconds=PAUSE_SECONDS_MIN, max_seconds=PAUSE_SECONDS_MAX / 2, jitter=1.0
        )
        self._problem: str | None = None
        """The last logged problem; empty if there is none, None before the first response."""

    async def run(self) -> None:
        while True:
            try:
                async with self._connect() as send:
                    await self._send(send)
            except Exception as error:  # noqa: BLE001 - a boundary: the broker continues.
                self._log_problem(_reason(error))
                await asyncio.sleep(self._backoff.next_seconds())

    async def _send(self, send: Send) -> None:
        """Send one stream after the other, until one fails."""
        while True:
            await self._stream(send, STREAM_SAMPLES if self._problem == "" else 1)
            self._log_problem("")
            self._backoff.reset()
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _stream(self, send: Send, count: int) -> None:
        async def samples() -> AsyncIterator[MetricsSample]:
            for index in range(count):
                if index:
                    await asyncio.sleep(SAMPLE_SECONDS)
                yield self._measure()

        async with asyncio.timeout(count * SAMPLE_SECONDS + ACK_SECONDS_MAX):
            await send(samples())

    def _log_problem(self, problem: str) -> None:
        if problem == self._problem:
            return
        if problem:
            logger.warning("operator does not accept samples", reason=problem)
        else:
            logger.info("operator accepts samples")
        self._problem = problem


def _reason(error: Exception) -> str:
    if isinstance(error, ControlError):
        return error.details
    return str(error) or "timed out"
