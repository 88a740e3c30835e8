"""What a broker measures, sent to the operator as long as the broker lives.

The laws: whatever becomes of the operator, the broker serves on: nothing is raised here, little is
spent, and only changes are logged. An operator that is gone without a word is found out, because no
stream lasts for long and each has to be acknowledged in time. After a failure a single sample finds
out whether somebody is there again; who is there is stayed with, because of several operators that
share an address only the one that leads takes samples.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Final

from kafscale.broker.services import Services
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import BROKER_METRICS, Metrics

log = get_logger(__name__)

SAMPLE_SECONDS: Final = 5.0
STREAM_SAMPLES: Final = 12
"""How many samples are sent before the operator has to say that it has them."""
ANSWER_SECONDS_MAX: Final = 10.0
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
"""The metrics that are sent, under the names that a scrape has for them; without their labels, they
are the totals of what this broker counts at the moment."""

_SENT: Final = tuple(each for each in BROKER_METRICS if each.name in SENT)
assert len(_SENT) == len(SENT), "what is sent is declared"

Send = Callable[[AsyncIterator[MetricsSample]], Awaitable[Ack]]
"""Returns when the samples have come to an end and are acknowledged."""
Connect = Callable[[], AbstractAsyncContextManager[Send]]


async def report(services: Services, random: Random) -> None:
    """Send samples for ever; at once done where there is no operator to send them to."""
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
    """What a broker measures at this moment."""
    taken = MetricsSample(cluster_id=cluster_id, broker_id=str(broker_id), timestamp_ms=now_ms)
    for declared in _SENT:
        values = taken.counters if declared.type == "counter" else taken.gauges
        values[declared.name] = sum(
            value for _, value in declared.read(metrics) if isinstance(value, int | float)
        )
    return taken


class Reporter:
    """Sends samples to whoever takes them."""

    def __init__(
        self, connect: Connect, measure: Callable[[], MetricsSample], random: Random
    ) -> None:
        self._connect = connect
        self._measure = measure
        self._random = random
        self._failures = 0
        self._trouble: str | None = None
        """What is wrong, as it was logged; nothing if nothing is, None before the first answer."""

    async def run(self) -> None:
        while True:
            try:
                async with self._connect() as send:
                    await self._send(send)
            except Exception as error:  # noqa: BLE001 - an edge: the broker serves on.
                self._note(_reason(error))
                self._failures += 1
                await asyncio.sleep(self._pause_seconds())

    async def _send(self, send: Send) -> None:
        """Send one stream after the other, until that fails."""
        while True:
            await self._stream(send, STREAM_SAMPLES if self._trouble == "" else 1)
            self._note("")
            self._failures = 0
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _stream(self, send: Send, count: int) -> None:
        async def samples() -> AsyncIterator[MetricsSample]:
            for index in range(count):
                if index:
                    await asyncio.sleep(SAMPLE_SECONDS)
                yield self._measure()

        async with asyncio.timeout(count * SAMPLE_SECONDS + ANSWER_SECONDS_MAX):
            await send(samples())

    def _pause_seconds(self) -> float:
        """Longer each time, and never in step with other brokers."""
        longest = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN * 2.0 ** min(self._failures, 10))
        return self._random.uniform(longest / 2, longest)

    def _note(self, trouble: str) -> None:
        if trouble == self._trouble:
            return
        if trouble:
            log.warning("operator does not take samples", reason=trouble)
        else:
            log.info("operator takes samples")
        self._trouble = trouble


def _reason(error: Exception) -> str:
    if isinstance(error, ControlError):
        return error.details
    return str(error) or "no answer in time"
