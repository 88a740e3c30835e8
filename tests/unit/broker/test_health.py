"""When a broker takes its object store for unavailable, and when it trusts it again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace

import pytest

from kafscale.broker.health import TICK_SECONDS, Health
from kafscale.config.sections.s3 import S3
from kafscale.errors import ObjectNotFoundError, OverloadedError, StoreUnavailableError
from kafscale.observability.metrics.broker import Metrics
from kafscale.records.checksum import Buffer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.layers.observed import ObservedObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.testing import virtual_time
from unit.storage.engines import NAMESPACE, append, opened, simulate

SETTINGS = S3(health_window_sec=4, namespace=NAMESPACE)
CRITICAL_SECONDS = SETTINGS.latency_crit_ms / 1000
NOTICED_SECONDS = 2 * CRITICAL_SECONDS + 2 * TICK_SECONDS
BACK_SECONDS = CRITICAL_SECONDS + 2 * TICK_SECONDS
"""A probe that was under way when the store came back has to end first."""


class Patient(MemoryObjectStore):
    """A store that can be away or unwell in several ways, and counts who asks for its health."""

    __slots__ = ("lag_seconds", "present", "probes", "refuses", "refuses_puts")

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self.present = asyncio.Event()
        self.present.set()
        self.refuses = False
        self.refuses_puts = False
        self.lag_seconds = 0.0
        self.probes = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self.probes += "/_probe/" in key
        await self._attend()
        if self.refuses_puts:
            raise StoreUnavailableError("read-only for now")
        await super().put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        await self._attend()
        return await super().get(key)

    async def _attend(self) -> None:
        if self.refuses:
            raise StoreUnavailableError("connection refused")
        await self.present.wait()
        await asyncio.sleep(self.lag_seconds)


Scenario = Callable[[Health, Patient, StorageEngine], Awaitable[None]]


def watched(scenario: Scenario, settings: S3 = SETTINGS) -> None:
    """Run a scenario with a broker's storage and somebody who looks after its health."""

    async def run() -> None:
        health = Health(settings, Metrics(), virtual_time.clock_ms)
        patient = Patient()
        store = ObservedObjectStore(patient, health.on_operation)
        engine = await opened(store)
        health.watch(engine, SimpleNamespace(connected=True))
        watching = asyncio.ensure_future(health.run(store))
        await scenario(health, patient, engine)
        watching.cancel()
        engine.close()

    simulate(run)


def is_refusing(health: Health) -> bool:
    """Whether reads and writes are refused, which they are together."""
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


def test_a_store_that_falls_silent_while_records_wait_is_noticed_soon():
    async def scenario(health, patient, engine):
        patient.present.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(NOTICED_SECONDS)
        assert is_refusing(health)
        assert "does not answer" in health.problems()["object storage"]
        patient.present.set()
        await waiting

    watched(scenario)


def test_silence_that_outlasts_the_window_is_still_no_good_news():
    async def scenario(health, patient, engine):
        patient.present.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(NOTICED_SECONDS)
        for _ in range(30):
            await asyncio.sleep(1)
            assert is_refusing(health)
        patient.present.set()
        await asyncio.sleep(BACK_SECONDS)
        assert not is_refusing(health)
        await waiting

    watched(scenario)


def test_service_resumes_at_once_when_a_store_is_back_after_long():
    """However long the last upload would still have paused before its next try."""

    async def scenario(health, patient, engine):
        patient.refuses = True
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(300)
        assert is_refusing(health)
        patient.refuses = False
        async with asyncio.timeout(2 * TICK_SECONDS):
            await waiting
        assert not is_refusing(health)

    watched(scenario)


def test_a_store_that_nobody_waits_for_is_left_alone():
    async def scenario(health, patient, engine):
        await append(engine, b"value")
        await asyncio.sleep(600)
        assert patient.probes == 0
        assert not is_refusing(health)

    watched(scenario)


def test_a_store_that_is_asked_again_after_a_long_rest_is_not_taken_for_silent():
    async def scenario(health, patient, engine):
        await asyncio.sleep(600)
        patient.lag_seconds = 1.5 * TICK_SECONDS
        await append(engine, b"value")
        assert patient.probes == 0
        assert not is_refusing(health)

    watched(scenario)


def test_a_store_that_falls_silent_while_somebody_reads_is_noticed_soon():
    """Though no record waits for it, and long before the read itself is given up."""

    async def scenario(health, patient, engine):
        del engine
        store = ObservedObjectStore(patient, health.on_operation)
        await patient.put("test/a", [b"x"])
        patient.present.clear()
        reading = asyncio.ensure_future(store.get("test/a"))
        await asyncio.sleep(NOTICED_SECONDS)
        assert is_refusing(health)
        patient.present.set()
        assert await reading == b"x"
        await asyncio.sleep(BACK_SECONDS)
        assert not is_refusing(health)

    watched(scenario)


def test_answers_that_take_too_long_on_average_are_an_outage_which_ends_with_them():
    """S-13: 3.5 s are too slow, 2 s are slow, and the next fast answer is trusted."""

    async def scenario(health, patient, engine):
        await until_refusing(health, patient, lag_seconds=3.5)
        for _ in range(10):
            await asyncio.sleep(1)
            assert is_refusing(health)
        patient.lag_seconds = 0.01
        await asyncio.sleep(BACK_SECONDS)
        assert not is_refusing(health)
        await append(engine, b"value")

    watched(scenario)


def test_slow_answers_are_no_reason_to_refuse():
    async def scenario(health, patient, engine):
        del engine
        store = ObservedObjectStore(patient, health.on_operation)
        patient.lag_seconds = 2
        for _ in range(10):
            await asyncio.gather(*(look(store) for _ in range(5)))
            assert not is_refusing(health)

    watched(scenario)


@pytest.mark.parametrize("crit_ms", [1000, 8000])
def test_a_store_is_back_when_it_answers_as_fast_as_is_asked_of_it(crit_ms):
    """Whatever is asked: a limit of the probe's own would keep a slow store away for ever."""
    settings = S3(health_window_sec=10, latency_crit_ms=crit_ms, namespace=NAMESPACE)
    critical_seconds = crit_ms / 1000

    async def scenario(health, patient, engine):
        del engine
        await until_refusing(health, patient, lag_seconds=1.1 * critical_seconds)
        patient.lag_seconds = 0.9 * critical_seconds
        # One probe in vain, then a write and a read.
        await asyncio.sleep(3 * critical_seconds + 3 * TICK_SECONDS)
        assert not is_refusing(health)

    watched(scenario, settings)


def test_a_store_that_reads_but_does_not_write_is_not_back():
    async def scenario(health, patient, engine):
        patient.refuses_puts = True
        waiting = asyncio.ensure_future(append(engine, b"value"))
        await asyncio.sleep(10)
        for _ in range(20):
            await asyncio.sleep(1)
            assert is_refusing(health)
        patient.refuses_puts = False
        await asyncio.sleep(BACK_SECONDS)
        assert not is_refusing(health)
        await waiting

    watched(scenario)


@pytest.mark.parametrize("status", ["not_found", "exists", "cancelled"])
def test_a_storm_of_missing_objects_is_no_outage(status):
    async def scenario(health, patient, engine):
        del engine
        for _ in range(1000):
            health.on_operation("get", "begun", 0.0, 0)
            health.on_operation("get", status, 60.0 if status == "cancelled" else 0.01, 0)
        await asyncio.sleep(2 * TICK_SECONDS)
        assert not is_refusing(health)
        assert patient.probes == 0

    watched(scenario)


def test_how_a_copy_does_says_nothing_about_the_store():
    async def scenario(health, patient, engine):
        del engine
        for _ in range(100):
            health.on_operation("replica_get", "begun", 0.0, 0)
            health.on_operation("replica_get", "unavailable", 10.0, 0)
        health.on_operation("replica_get", "begun", 0.0, 0)
        await asyncio.sleep(60)
        assert not is_refusing(health)
        assert patient.probes == 0

    watched(scenario)


async def until_refusing(health: Health, patient: Patient, lag_seconds: float) -> None:
    """Read from a store that has become slow until it is taken for unavailable."""
    store = ObservedObjectStore(patient, health.on_operation)
    patient.lag_seconds = lag_seconds
    async with asyncio.timeout(10 * lag_seconds):
        while not is_refusing(health):
            await asyncio.gather(*(look(store) for _ in range(5)))
            await asyncio.sleep(TICK_SECONDS)


async def look(store: ObjectStore) -> None:
    """Read what is not there, which is answered as fast as anything else."""
    with suppress(ObjectNotFoundError):
        await store.get("test/missing")


def test_a_slow_upload_is_no_reason_to_refuse_while_others_are_answered():
    async def scenario(health, patient, engine):
        patient.present.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        for _ in range(20):
            await asyncio.sleep(1)
            health.on_operation("get", "begun", 0.0, 0)
            health.on_operation("get", "success", 0.01, 0)
            assert not is_refusing(health)
        patient.present.set()
        await waiting

    watched(scenario)
