"""When a broker takes its object store for unavailable, and when it trusts it again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace

import pytest

from kafscale.broker.health import PROBE_SECONDS, TICK_SECONDS, Health
from kafscale.config.stores import S3
from kafscale.errors import OverloadedError, StoreUnavailableError
from kafscale.observability.metrics import Metrics
from kafscale.records.checksum import Buffer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.base import ObjectInfo
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.observed import ObservedObjectStore
from kafscale.testing import virtual_time
from unit.storage.engines import NAMESPACE, append, opened, simulate

SETTINGS = S3(health_window_sec=4, namespace=NAMESPACE)
NOTICED_SECONDS = SETTINGS.latency_crit_ms / 1000 + PROBE_SECONDS + 2 * TICK_SECONDS


class Patient(MemoryObjectStore):
    """A store that can be away, in one way or the other, and counts who asks whether it is back."""

    __slots__ = ("heads", "present", "refuses")

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self.present = asyncio.Event()
        self.present.set()
        self.refuses = False
        self.heads = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._attend()
        await super().put(key, parts, create=create)

    async def head(self, key: str) -> ObjectInfo:
        self.heads += 1
        await self._attend()
        return await super().head(key)

    async def _attend(self) -> None:
        if self.refuses:
            raise StoreUnavailableError("connection refused")
        await self.present.wait()


Scenario = Callable[[Health, Patient, StorageEngine], Awaitable[None]]


def watched(scenario: Scenario) -> None:
    """Run a scenario with a broker's storage and somebody who looks after its health."""

    async def run() -> None:
        health = Health(SETTINGS, Metrics(), virtual_time.clock_ms)
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
        await asyncio.sleep(PROBE_SECONDS + 2 * TICK_SECONDS)
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
        assert patient.heads == 0
        assert not is_refusing(health)

    watched(scenario)


def test_a_slow_upload_is_no_reason_to_refuse_while_others_are_answered():
    async def scenario(health, patient, engine):
        patient.present.clear()
        waiting = asyncio.ensure_future(append(engine, b"value"))
        for _ in range(20):
            await asyncio.sleep(1)
            health.on_operation("get", "success", 0.01, 0)
            assert not is_refusing(health)
        patient.present.set()
        await waiting

    watched(scenario)
