"""The broker's own health: how the object store does, whether metadata arrives, who may come in.

The law: while the store is unavailable, whatever needs it is refused at once with an error that
clients try again, and nothing more is buffered; what memory can answer is still served. The store
is probed meanwhile, with a write and a read, and service resumes by itself as soon as both are
answered in time, and no sooner. It is also probed when it falls silent while somebody waits for it:
silence alone fails no request for long.
"""

import asyncio
from collections.abc import Callable, Mapping

from kafscale.config.sections.s3 import S3
from kafscale.errors import OperatingError, OverloadedError, StoreUnavailableError
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.layers.observed import BEGUN, CANCELLED, FAILURES, REPLICA
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.objects.store_health import HealthState, HealthWindow

log = get_logger(__name__)

TICK_SECONDS = 1.0
PROBE = b"is this store there?"
FAIR_BYTES_PER_SECOND = 16 * 1024 * 1024
"""The speed at which a transfer counts as no latency at all."""


class Health:
    """Watches over the stores of a broker."""

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
        self._answer_ms_max = s3.latency_crit_ms
        self._under_way_count = 0
        self._silent_since_ms = clock()
        self._state = HealthState.HEALTHY
        self._storage: StorageEngine | None = None
        self._catalog: Catalog | None = None
        self._others: Callable[[], Mapping[str, str]] = lambda: {"cluster": "not joined yet"}

    # --- what is asked ------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Refuse what would have to be buffered while the store is away."""
        if self._state is HealthState.UNAVAILABLE:
            raise OverloadedError("object storage is unavailable; try again")

    def check_readable(self) -> None:
        """Refuse what would have to be read from the store while it is away."""
        if self._state is HealthState.UNAVAILABLE:
            raise StoreUnavailableError("object storage is unavailable; try again")

    def problems(self) -> Mapping[str, str]:
        """What stands in the way of serving clients; nothing, at best."""
        found: dict[str, str] = {}
        if self._state is HealthState.UNAVAILABLE:
            rate = self._window.error_rate(self._clock())
            detail = f"{rate:.0%} of requests fail" if rate else "it does not answer"
            found["object storage"] = f"unavailable, {detail}"
        if self._catalog is not None and not self._catalog.connected:
            found["metadata"] = "changes do not arrive"
        return {**found, **self._others()}

    # --- what is told -------------------------------------------------------------------------

    def on_operation(self, operation: str, status: str, seconds: float, size_bytes: int) -> None:
        """Take note of a request to the object store."""
        is_of_store = not operation.startswith(REPLICA)
        if status == BEGUN:
            self._under_way_count += is_of_store
            return
        self._metrics.operation(operation).observe(seconds, succeeded=status not in FAILURES)
        if is_of_store:
            # A segment takes its time without the store being slow.
            latency_seconds = max(seconds - size_bytes / FAIR_BYTES_PER_SECOND, 0.0)
            self._on_ended(status, latency_seconds * 1000)

    def _on_ended(self, status: str, latency_ms: float) -> None:
        self._under_way_count -= 1
        if status == CANCELLED:
            return  # It was not the store that ended it.
        now_ms = self._clock()
        failed = status in FAILURES
        self._window.record(now_ms, latency_ms, failed=failed)
        if not failed:
            self._silent_since_ms = now_ms

    def watch(
        self,
        storage: StorageEngine,
        catalog: Catalog,
        others: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Look after these from now on; `others` names further problems."""
        self._storage = storage
        self._catalog = catalog
        self._others = others

    async def run(self, store: ObjectStore) -> None:
        """Look after everything once a second; cancel it to stop."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self._metrics.event_loop_lag_seconds.observe(loop.time() - due)
            if self._state is HealthState.UNAVAILABLE or self._is_silent():
                await self._ask(store)
            else:
                self._enter(self._window.state(self._clock()))
            self._copy_statistics()

    def _is_silent(self) -> bool:
        """Whether somebody waits for a store that has not answered anybody for long.

        The window knows requests that have ended, and it takes long until one ends without answer;
        and while records wait between two tries, there may be none at all.
        """
        now_ms = self._clock()
        has_records = self._storage is not None and self._storage.wal.unflushed_bytes
        if not (self._under_way_count or has_records):
            self._silent_since_ms = now_ms
        return now_ms - self._silent_since_ms >= self._answer_ms_max

    async def _ask(self, store: ObjectStore) -> None:
        """Find out whether the store is there: the window cannot, as few ask one that is not."""
        if not await self._answers(store):
            self._enter(HealthState.UNAVAILABLE)
        elif self._state is HealthState.UNAVAILABLE:
            self._window.clear()
            self._enter(HealthState.HEALTHY)
            if self._storage is not None:
                self._storage.wal.retry_now()

    async def _answers(self, store: ObjectStore) -> bool:
        """Whether the store takes an object and gives it back, each in fair time.

        Either alone is not enough: a disk that is full still reads, and a store may come back in
        one respect only.
        """
        limit_seconds = self._answer_ms_max / 1000
        try:
            async with asyncio.timeout(limit_seconds):
                await store.put(self._probe_key, [PROBE], create=False)
            async with asyncio.timeout(limit_seconds):
                await store.get(self._probe_key)
        except (OperatingError, TimeoutError):
            return False
        return True

    def _enter(self, state: HealthState) -> None:
        now_ms = self._clock()
        if state is not self._state:
            tell = log.info if state is HealthState.HEALTHY else log.warning
            tell(
                "object storage health changed",
                state=state.value,
                before=self._state.value,
                error_rate=round(self._window.error_rate(now_ms), 3),
                latency_ms=round(self._window.latency_ms_mean(now_ms), 1),
            )
        self._state = state
        self._metrics.store_health.state = state.value
        self._metrics.store_health.error_rate = self._window.error_rate(now_ms)

    def _copy_statistics(self) -> None:
        storage = self._storage
        if storage is None:
            return
        traffic, statistics = self._metrics.log, storage.counters
        traffic.unflushed_bytes = storage.wal.unflushed_bytes
        traffic.wal_puts = statistics.wal_puts
        traffic.wal_bytes = statistics.wal_bytes
        traffic.wal_retries = statistics.wal_retries
        traffic.wal_objects = len(storage.trimmer)
        traffic.tail_bytes = storage.memory.used_bytes
        traffic.segments_rolled = statistics.segments_rolled.total()
        traffic.segment_bytes_rolled = statistics.segment_bytes
        traffic.cache_bytes = storage.reader.cached_bytes
