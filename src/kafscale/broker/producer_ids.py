"""Producer ids: taken from the cluster in blocks, given out one by one."""

import asyncio

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.store.base import MetadataStore

BLOCK = 1000
"""As many as Kafka takes at once: one write to the store for a thousand producers."""


class ProducerIds:
    """The ids that this broker may give out; no other broker has the same."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._block: list[int] = []
        self._taking = asyncio.Lock()

    async def take(self) -> int:
        async with self._taking:
            if not self._block:
                first = await id_allocator.allocate(
                    self._store, id_allocator.PRODUCER_ID_COUNTER, BLOCK
                )
                self._block = list(range(first + BLOCK - 1, first - 1, -1))
            return self._block.pop()
