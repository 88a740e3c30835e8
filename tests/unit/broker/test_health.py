"""Object store health: when the store counts as unavailable, and when it recovers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from doubles import virtual_time
from kafscale.broker.health import TICK_SECONDS, Health
from kafscale.config.sections.s3 import S3
from kafscale.errors import ObjectNotFoundError, OverloadedError, StoreUnavailableError
from kafscale.observability.metrics.broker import Metrics
from kafscale.records.checksum import Buffer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.layers.observed import ObservedObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.wal.buffer import SealPolicy
from unit.storage.engines import NAMESPACE, append, open_engine, simulate

SETTINGS = S3(health_window_sec=4, namespace=NAMESPACE)
CRITICAL_SECONDS = SETTINGS.latency_crit_ms / 1000
DETECTION_SECONDS = 2 * CRITICAL_SECONDS + 2 * TICK_SECONDS
RECOVERY_SECONDS = CRITICAL_SECONDS + 2 * TICK_SECONDS
"""A probe that runs when the store recovers has to time out first."""


class UnreliableStore(MemoryObjectStore):
    """A store that can hang, refuse requests or be slow, and counts probes."""

    __slots__ = ("lag_seconds", "probes", "refuses", "refuses_puts", "responds")

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self.responds = asyncio.Event()
        self.responds.set()
        self.refuses = False
        self.refuses_puts = False
        self.lag_seconds = 0.0
        self.probes = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self.probes += "/_probe/" in key
        await self._delay()
        if self.refuses_puts:
            raise StoreUnavailableError("read-only for now")
        await super().put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        await self._delay()
        return await super().get(key)

    async def _delay(self) -> None:
        if self.refuses:
            raise StoreUnavailableError("connection refused")
        await self.responds.wait()
        await asyncio.sleep(self.lag_seconds)


Scenario = Callable[[Health, UnreliableStore, StorageEngine], Awaitable[None]]


def run_with_health(scenario: Scenario, settings: S3 = SETTINGS, **engine_changes: Any) -> None:
    """Run a scenario with a storage engine and its health checks."""

    async def run() -> None:
        health = Health(settings, Metrics(), virtual_time.clock_ms)
        store = UnreliableStore()
        observed = ObservedObjectStore(store, health.on_operation)
        engine = await open_engine(observed, **engine_changes)
        health.watch(engine, SimpleNamespace(connected=True))
        health.accepts_clients = True
        task = asyncio.ensure_future(health.run(observed))
        await scenario(health, store, engine)
        task.cancel()
        engine.close()

    simulate(run)


def is_unavailable(health: Health) -> bool:
    """Whether reads and writes are refused; never only one of them."""
    try:
        health.check_writable()
    except OverloadedError:
        with pytest.raises(StoreUnavailableError):
            health.check_readable()
        assert "object storage" in health.problems()
        return True
    health.check_readable()
    assert health.problems() == {}
    return False


def test_unresponsive_store_is_detected_while_records_wait():
    async def scenario(health, store, engine):
        store.responds.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(DETECTION_SECONDS)
        assert is_unavailable(health)
        assert "does not respond" in health.problems()["object storage"]
        store.responds.set()
        await waiting

    run_with_health(scenario)


def test_store_stays_unavailable_after_the_window_has_passed():
    async def scenario(health, store, engine):
        store.responds.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(DETECTION_SECONDS)
        for _ in range(30):
            await asyncio.sleep(1)
            assert is_unavailable(health)
        store.responds.set()
        await asyncio.sleep(RECOVERY_SECONDS)
        assert not is_unavailable(health)
        await waiting

    run_with_health(scenario)


def test_service_resumes_at_once_after_a_long_outage():
    """The pause of the upload's retry is cut short."""

    async def scenario(health, store, engine):
        store.refuses = True
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(300)
        assert is_unavailable(health)
        store.refuses = False
        async with asyncio.timeout(2 * TICK_SECONDS):
            await waiting
        assert not is_unavailable(health)

    run_with_health(scenario)


def test_idle_store_is_not_probed():
    async def scenario(health, store, engine):
        await append(engine, b"value")
        await asyncio.sleep(600)
        assert store.probes == 0
        assert not is_unavailable(health)

    run_with_health(scenario)


def test_store_is_not_probed_while_records_wait_on_purpose():
    """D-02: for a flush interval that is longer than the critical latency."""

    async def scenario(health, store, engine):
        await append(engine, b"first")  # It uses up the budget of PUTs.
        began_ms = virtual_time.clock_ms()
        await append(engine, b"second")
        assert virtual_time.clock_ms() - began_ms > 10 * SETTINGS.latency_crit_ms
        assert store.probes == 0
        assert not is_unavailable(health)

    policy = SealPolicy(
        flush_bytes=1_000_000,
        flush_messages=10_000,
        flush_interval_ms=60_000,
        uploads_max=8,
        idle_uploads_max=8,
    )
    run_with_health(scenario, seal_policy=policy, puts_per_second=0.01)


def test_first_request_after_a_long_idle_time_is_not_unresponsive():
    async def scenario(health, store, engine):
        await asyncio.sleep(600)
        store.lag_seconds = 1.5 * TICK_SECONDS
        await append(engine, b"value")
        assert store.probes == 0
        assert not is_unavailable(health)

    run_with_health(scenario)


def test_unresponsive_store_is_detected_during_reads():
    """No record waits for the store, and the read itself times out much later."""

    async def scenario(health, store, engine):
        del engine
        observed = ObservedObjectStore(store, health.on_operation)
        await store.put("test/a", [b"x"])
        store.responds.clear()
        reading = asyncio.ensure_future(observed.get("test/a"))
        await asyncio.sleep(DETECTION_SECONDS)
        assert is_unavailable(health)
        store.responds.set()
        assert await reading == b"x"
        await asyncio.sleep(RECOVERY_SECONDS)
        assert not is_unavailable(health)

    run_with_health(scenario)


def test_critical_latency_is_an_outage_until_latency_recovers():
    """S-13: 3.5 s are critical, 2 s are slow, and the next fast response ends the outage."""

    async def scenario(health, store, engine):
        await until_unavailable(health, store, lag_seconds=3.5)
        for _ in range(10):
            await asyncio.sleep(1)
            assert is_unavailable(health)
        store.lag_seconds = 0.01
        await asyncio.sleep(RECOVERY_SECONDS)
        assert not is_unavailable(health)
        await append(engine, b"value")

    run_with_health(scenario)


def test_slow_store_is_still_available():
    async def scenario(health, store, engine):
        del engine
        observed = ObservedObjectStore(store, health.on_operation)
        store.lag_seconds = 2
        for _ in range(10):
            await asyncio.gather(*(read_missing(observed) for _ in range(5)))
            assert not is_unavailable(health)

    run_with_health(scenario)


@pytest.mark.parametrize("crit_ms", [1000, 8000])
def test_probe_uses_the_configured_latency_limit(crit_ms):
    """A fixed limit for probes would keep a slow store unavailable."""
    settings = S3(health_window_sec=10, latency_crit_ms=crit_ms, namespace=NAMESPACE)
    critical_seconds = crit_ms / 1000

    async def scenario(health, store, engine):
        del engine
        await until_unavailable(health, store, lag_seconds=1.1 * critical_seconds)
        store.lag_seconds = 0.9 * critical_seconds
        # One probe that times out, then a write and a read.
        await asyncio.sleep(3 * critical_seconds + 3 * TICK_SECONDS)
        assert not is_unavailable(health)

    run_with_health(scenario, settings)


def test_readable_store_without_writes_stays_unavailable():
    async def scenario(health, store, engine):
        store.refuses_puts = True
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(10)
        for _ in range(20):
            await asyncio.sleep(1)
            assert is_unavailable(health)
        store.refuses_puts = False
        await asyncio.sleep(RECOVERY_SECONDS)
        assert not is_unavailable(health)
        await waiting

    run_with_health(scenario)


@pytest.mark.parametrize("status", ["not_found", "exists", "cancelled"])
def test_missing_objects_are_no_outage(status):
    async def scenario(health, store, engine):
        del engine
        for _ in range(1000):
            health.on_operation("get", "begun", 0.0, 0)
            health.on_operation("get", status, 60.0 if status == "cancelled" else 0.01, 0)
        await asyncio.sleep(2 * TICK_SECONDS)
        assert not is_unavailable(health)
        assert store.probes == 0

    run_with_health(scenario)


def test_replica_failures_do_not_affect_store_health():
    async def scenario(health, store, engine):
        del engine
        for _ in range(100):
            health.on_operation("replica_get", "begun", 0.0, 0)
            health.on_operation("replica_get", "unavailable", 10.0, 0)
        health.on_operation("replica_get", "begun", 0.0, 0)
        await asyncio.sleep(60)
        assert not is_unavailable(health)
        assert store.probes == 0

    run_with_health(scenario)


async def until_unavailable(health: Health, store: UnreliableStore, lag_seconds: float) -> None:
    """Read from a slow store until it counts as unavailable."""
    observed = ObservedObjectStore(store, health.on_operation)
    store.lag_seconds = lag_seconds
    async with asyncio.timeout(10 * lag_seconds):
        while not is_unavailable(health):
            await asyncio.gather(*(read_missing(observed) for _ in range(5)))
            await asyncio.sleep(TICK_SECONDS)


async def read_missing(store: ObjectStore) -> None:
    """Read a missing object, which takes as long as any other request."""
    with suppress(ObjectNotFoundError):
        await store.get("test/missing")


def test_one_slow_upload_is_no_outage_while_others_succeed():
    async def scenario(health, store, engine):
        store.responds.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        for _ in range(20):
            await asyncio.sleep(1)
            health.on_operation("get", "begun", 0.0, 0)
            health.on_operation("get", "success", 0.01, 0)
            assert not is_unavailable(health)
        store.responds.set()
        await waiting

    run_with_health(scenario)
