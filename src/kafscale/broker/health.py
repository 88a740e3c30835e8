"""The broker's health: state of the object store, metadata updates, and readiness.

Invariant: while the object store is unavailable, requests that need it are refused at once with a
retriable error, and nothing more is buffered; what is in memory is still served. Meanwhile the
store is probed with a write and a read; service resumes when both succeed in time, and not before.
The store is also probed if it has not responded for a while although a request or a WAL object
waits for it, so that an unresponsive store is detected before those requests time out. Records that
wait for the flush interval do not wait for the store.
"""

import asyncio
from collections.abc import Callable, Mapping

from kafscale.config.sections.s3 import S3
from kafscale.errors import OperatingError, OverloadedError, StoreUnavailableError
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.layers.observed import BEGUN, CANCELLED, FAILURES, REPLICA
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.objects.store_health import HealthState, HealthWindow

logger = get_logger(__name__)

TICK_SECONDS = 1.0
PROBE = b"is this store there?"
EXPECTED_BYTES_PER_SECOND = 16 * 1024 * 1024
"""The throughput at which the transfer itself does not count as latency."""


class Health:
    """Tracks the health of a broker's stores."""

    def __init__(self, s3: S3, metrics: Metrics, clock: Callable[[], int]) -> None:
        self._metrics = metrics
        self._clock = clock
        self._window = HealthWindow(
            window_ms=s3.health_window_sec * 1000,
            latency_warn_ms=s3.latency_warn_ms,
            latency_crit_ms=s3.latency_crit_ms,
            error_rate_warn=s3.error_rate_warn,
            error_rate_crit=s3.error_rate_crit,
        )
        self._probe_key = f"{s3.namespace}/{object_keys.PROBE_DIRECTORY}/health"
        self._response_ms_max = s3.latency_crit_ms
        self._in_flight_count = 0
        self._responded_ms = clock()
        self._state = HealthState.HEALTHY
        self._storage: StorageEngine | None = None
        self._topic_store: TopicStore | None = None
        self._others: Callable[[], Mapping[str, str]] = lambda: {"cluster": "not joined yet"}
        self._warnings: Callable[[], Mapping[str, str]] = dict
        self.accepts_clients = False
        """Whether the listeners accept connections; set by the broker process."""

    # --- queries ------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Raise if the store is unavailable, so that records would only be buffered."""
        if self._state is HealthState.UNAVAILABLE:
            raise OverloadedError("object storage is unavailable; try again")

    def check_readable(self) -> None:
        """Raise if the store is unavailable for reads."""
        if self._state is HealthState.UNAVAILABLE:
            raise StoreUnavailableError("object storage is unavailable; try again")

    def problems(self) -> Mapping[str, str]:
        """The reasons why the broker is not ready for clients, by component."""
        problems: dict[str, str] = {}
        if self._state is HealthState.UNAVAILABLE:
            rate = self._window.error_rate(self._clock())
            detail = f"{rate:.0%} of requests fail" if rate else "it does not respond"
            problems["object storage"] = f"unavailable, {detail}"
        if self._topic_store is not None and not self._topic_store.connected:
            problems["metadata"] = "the watch is disconnected"
        if not self.accepts_clients:
            problems["listeners"] = "connections are not accepted"
        return {**problems, **self._others()}

    def warnings(self) -> Mapping[str, str]:
        """What an operator should know although the broker is ready, by component.

        A full etcd is no reason not to be ready: records are still produced and consumed, and all
        brokers have the same etcd, so that clients would find none.
        """
        return self._warnings()

    # --- observations -------------------------------------------------------------------------

    def on_operation(self, operation: str, status: str, seconds: float, size_bytes: int) -> None:
        """Record a request to the object store."""
        is_primary = not operation.startswith(REPLICA)
        if status == BEGUN:
            self._in_flight_count += is_primary
            return
        self._metrics.operation(operation).observe(seconds, succeeded=status not in FAILURES)
        if is_primary:
            # The transfer of a large segment takes time even if the store is fast.
            latency_seconds = max(seconds - size_bytes / EXPECTED_BYTES_PER_SECOND, 0.0)
            self._on_ended(status, latency_seconds * 1000)

    def _on_ended(self, status: str, latency_ms: float) -> None:
        self._in_flight_count -= 1
        if status == CANCELLED:
            return  # The broker cancelled it; this says nothing about the store.
        now_ms = self._clock()
        failed = status in FAILURES
        self._window.record(now_ms, latency_ms, failed=failed)
        if not failed:
            self._responded_ms = now_ms

    def watch(
        self,
        storage: StorageEngine,
        topic_store: TopicStore,
        others: Callable[[], Mapping[str, str]] = dict,
        warnings: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Include these components from now on; `others` returns further problems."""
        self._storage = storage
        self._topic_store = topic_store
        self._others = others
        self._warnings = warnings

    async def run(self, store: ObjectStore) -> None:
        """Check everything once a second, until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._state is HealthState.UNAVAILABLE or self._is_unresponsive():
                await self._check(store)
            else:
                self._set_state(self._window.state(self._clock()))
            self._copy_counters()

    def _is_unresponsive(self) -> bool:
        """Whether requests or WAL objects wait for a store that has not responded for too long.

        The window only has requests that have ended, and a request without a response ends late;
        while an object waits between two retries, there may be no request at all.
        """
        now_ms = self._clock()
        is_uploading = self._storage is not None and self._storage.wal.is_uploading
        if not (self._in_flight_count or is_uploading):
            self._responded_ms = now_ms
        return now_ms - self._responded_ms >= self._response_ms_max

    async def _check(self, store: ObjectStore) -> None:
        """Probe the store: while it is unavailable, too few requests reach the window."""
        if not await self._probe(store):
            self._set_state(HealthState.UNAVAILABLE)
        elif self._state is HealthState.UNAVAILABLE:
            self._window.clear()
            self._set_state(HealthState.HEALTHY)
            if self._storage is not None:
                self._storage.wal.retry_now()

    async def _probe(self, store: ObjectStore) -> bool:
        """Whether the store writes and reads an object, each within the time limit.

        Either alone is not enough: a full disk can still be read, and a store may recover for
        reads only.
        """
        limit_seconds = self._response_ms_max / 1000
        try:
            async with asyncio.timeout(limit_seconds):
                await store.put(self._probe_key, [PROBE], create=False)
            async with asyncio.timeout(limit_seconds):
                await store.get(self._probe_key)
        except (OperatingError, TimeoutError):
            return False
        return True

    def _set_state(self, state: HealthState) -> None:
        now_ms = self._clock()
        if state is not self._state:
            log_at_level = logger.info if state is HealthState.HEALTHY else logger.warning
            log_at_level(
                "object storage health changed",
                state=state.value,
                before=self._state.value,
                error_rate=round(self._window.error_rate(now_ms), 3),
                latency_ms=round(self._window.latency_ms_mean(now_ms), 1),
            )
        self._state = state
        self._metrics.store_health.state = state.value
        self._metrics.store_health.error_rate = self._window.error_rate(now_ms)

    def _copy_counters(self) -> None:
        storage = self._storage
        if storage is None:
            return
        counters, storage_counters = self._metrics.log, storage.counters
        counters.unflushed_bytes = storage.wal.unflushed_bytes
        counters.wal_puts = storage_counters.wal_puts
        counters.wal_bytes = storage_counters.wal_bytes
        counters.wal_retries = storage_counters.wal_retries
        counters.wal_objects = len(storage.trimmer)
        counters.tail_bytes = storage.memory.used_bytes
        counters.segments_rolled = storage_counters.segments_rolled.total()
        counters.segment_bytes_rolled = storage_counters.segment_bytes
        counters.damaged_reads = storage_counters.damaged_reads
        counters.cache_bytes = storage.reader.cached_bytes
