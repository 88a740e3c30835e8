"""The probe rejects stores that ignore create-only PUTs."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import ConfigError, ObjectExistsError
from kafscale.storage.objects import MemoryObjectStore, RetryingObjectStore, probe_create_only


class CarelessStore(MemoryObjectStore):
    """A store that ignores `create`."""

    async def put(self, key, parts, *, create=True):
        del create
        await super().put(key, parts, create=False)


class LyingStore(MemoryObjectStore):
    """A store that reports that the key exists, but overwrites the object."""

    async def put(self, key, parts, *, create=True):
        try:
            await super().put(key, parts, create=create)
        except ObjectExistsError:
            await super().put(key, parts, create=False)
            raise


async def keys(store):
    return [info.key async for chunk in store.list("ns/") for info in chunk]


def test_correct_store_passes():
    store = MemoryObjectStore()

    async def scenario():
        await probe_create_only(store, "ns", Random(1))
        assert await keys(store) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("store", [CarelessStore(), LyingStore()], ids=["careless", "lying"])
def test_store_that_overwrites_is_rejected(store):
    async def scenario():
        with pytest.raises(ConfigError, match="ignores If-None-Match"):
            await probe_create_only(store, "ns", Random(1))
        assert await keys(store) == []

    asyncio.run(scenario())


def test_lost_responses_do_not_mislead_the_probe():
    async def no_time(_seconds: float) -> None:
        pass

    async def scenario():
        rule = Rule(fault=Fault.RESPONSE_LOST, operations=frozenset({"put"}), times_max=1)
        faulty = FaultyObjectStore(MemoryObjectStore(), [rule], random=Random(1))
        store = RetryingObjectStore(faulty, retries_max=3, random=Random(2), sleep=no_time)
        await probe_create_only(store, "ns", Random(3))

    asyncio.run(scenario())
