"""Reads a partition as consumers with `read_committed` do, for pages of records.

Cursors get all batches, because they count offsets by them; only the scan leaves batches out.
"""

from kafscale.client.client import Client
from kafscale.client.consumer.aborted_transactions import AbortedTransactions
from kafscale.client.errors import check
from kafscale.client.isolation import IsolationLevel
from kafscale.client.partition import FETCH_BYTES_MAX, WAIT_MS, Partition
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import BatchView, split


class IsolatedPartition(Partition):
    """A partition that remembers which of its batches its readers do not see."""

    def __init__(
        self, client: Client, topic: TopicMetadata, index: int, isolation: IsolationLevel
    ) -> None:
        super().__init__(client, topic, index)
        self._isolation = isolation
        self._hidden: set[int] = set()
        """The base offsets of batches of aborted transactions."""

    async def fetch(self, offset: int, *, bytes_max: int = FETCH_BYTES_MAX) -> list[BatchView]:
        if self._isolation is IsolationLevel.READ_UNCOMMITTED:
            return await super().fetch(offset, bytes_max=bytes_max)

        async def once() -> FetchedPartition:
            return await self._fetch(offset, bytes_max)

        fetched = await self._with_retries(once)
        aborted = AbortedTransactions(fetched.aborted_transactions)
        batches = []
        for part in fetched.records or ():
            for batch in split(part, partial_ok=True):
                batch.verify_checksum()
                if aborted.contains(batch):
                    self._hidden.add(batch.base_offset)
                if batch.next_offset > offset:
                    batches.append(batch)
        return batches

    def shows(self, batch: BatchView) -> bool:
        """Whether readers see the records of a fetched batch."""
        return batch.base_offset not in self._hidden

    async def _fetch(self, offset: int, bytes_max: int) -> FetchedPartition:
        partition = PartitionToFetch(index=self._index, offset=offset, max_bytes=bytes_max)
        topic = TopicToFetch(name=self._name, topic_id=self._topic.topic_id, partitions=[partition])
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=bytes_max,
            isolation_level=self._isolation.code,
            topics=[topic],
        )
        connection = await self._leader()
        response = await connection.ask(FETCH, request, wait_seconds=WAIT_MS / 1000)
        check(str(self), response.error_code)
        fetched = response.topics[0].partitions[0]
        check(str(self), fetched.error_code)
        return fetched
