"""Reads a partition as consumers with `read_committed` do, for pages of records.

Cursors get all batches, because they count offsets by them; only the scan leaves batches out.
"""

from kafscale.client.client import Client
from kafscale.client.consumer.aborted_transactions import AbortedTransactions
from kafscale.client.isolation import IsolationLevel
from kafscale.client.partition import FETCH_BYTES_MAX, Partition, batches_of
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import BatchView


class IsolatedPartition(Partition):
    """A partition that remembers which of its batches its readers do not see."""

    def __init__(
        self, client: Client, topic: TopicMetadata, index: int, isolation: IsolationLevel
    ) -> None:
        super().__init__(client, topic, index, isolation=isolation)
        self._hidden: set[int] = set()
        """The base offsets of batches of aborted transactions."""

    async def fetch(self, offset: int, *, bytes_max: int = FETCH_BYTES_MAX) -> list[BatchView]:
        fetched = await self._fetch(offset, bytes_max)
        aborted = AbortedTransactions(fetched.aborted_transactions)
        batches = batches_of(fetched, offset=-1)  # Markers below the offset end transactions, too.
        self._hidden.update(batch.base_offset for batch in batches if aborted.contains(batch))
        return [batch for batch in batches if batch.next_offset > offset]

    def shows(self, batch: BatchView) -> bool:
        """Whether readers see the records of a fetched batch."""
        return batch.base_offset not in self._hidden
