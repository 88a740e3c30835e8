"""Copies of damaged objects."""

import asyncio

from kafscale.storage import quarantine
from kafscale.storage.objects.memory import MemoryObjectStore


def test_keeps_one_copy_of_each_content():
    async def scenario():
        store = MemoryObjectStore(lambda: 0)
        key = "ns/orders/0/segment-00000000000000000000.kfs"
        for data in (b"one", b"one", b"two"):
            await quarantine.keep_copy(store, "ns", key, data, "test")
        listed = [item.key async for chunk in store.list("ns/") for item in chunk]
        assert len(listed) == 2
        assert all(copy.endswith("/orders/0/segment-00000000000000000000.kfs") for copy in listed)
        assert {bytes(await store.get(copy)) for copy in listed} == {b"one", b"two"}

    asyncio.run(scenario())
