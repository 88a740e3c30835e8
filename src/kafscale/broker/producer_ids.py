"""Producer ids: allocated from the cluster in blocks, assigned to producers one by one."""

import asyncio

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.store.base import MetadataStore

BLOCK = 1000
"""Kafka's block size: one write to the metadata store for a thousand producers."""


class ProducerIds:
    """The producer ids that this broker may assign; no other broker has the same."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._block: list[int] = []
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        async with self._lock:
            if not self._block:
                first = await id_allocator.allocate(
                    self._store, id_allocator.PRODUCER_ID_COUNTER, BLOCK
                )
                self._block = list(range(first + BLOCK - 1, first - 1, -1))
            return self._block.pop()
