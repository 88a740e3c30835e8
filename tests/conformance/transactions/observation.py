"""What clients see of transactions: records, offsets and descriptions."""

from collections.abc import Sequence
from typing import Any

from conformance.groups.comparison import Response
from conformance.groups.normalization import topic_id
from conformance.transactions.client import TransactionClient
from conformance.transactions.requests import Partitions, Producer, end
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from kafscale.protocol.messages.offset_fetch import OFFSET_FETCH, GroupToFetch, OffsetFetchRequest
from kafscale.protocol.messages.offset_fetch import TopicToFetch as OffsetsToFetch

UNCOMMITTED, COMMITTED = 0, 1
EVERYTHING = 1 << 24


def fetch(
    client: TransactionClient, isolation: int = COMMITTED, version: int = 12, **fields: int
) -> Response:
    """Fetch from one partition; return its part of the response."""
    request = fetch_request(client, isolation, **fields)
    (topic,) = client.call(FETCH, version, request).topics
    return topic.partitions[0]


def fetch_request(
    client: TransactionClient,
    isolation: int = COMMITTED,
    *,
    offset: int = 0,
    partition: int = 0,
    max_bytes: int = EVERYTHING,
    max_wait_ms: int = 0,
) -> FetchRequest:
    requested = PartitionToFetch(index=partition, offset=offset, max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1 if max_wait_ms else 0,
        isolation_level=isolation,
        topics=[
            TopicToFetch(name=client.topic, topic_id=topic_id(client.topic), partitions=[requested])
        ],
    )


def read(client: TransactionClient, *, partition: int = 0) -> None:
    """Compare the whole log of a partition in both isolation levels, and its end."""
    for isolation in (UNCOMMITTED, COMMITTED):
        fetch(client, isolation, partition=partition)
        end_offset(client, isolation, partition=partition)


def end_offset(
    client: TransactionClient,
    isolation: int = COMMITTED,
    *,
    version: int = 7,
    timestamp_ms: int = -1,
    partition: int = 0,
) -> Response:
    requested = PartitionToList(index=partition, timestamp_ms=timestamp_ms)
    request = ListOffsetsRequest(-1, isolation, [TopicToList(client.topic, [requested])])
    (topic,) = client.call(LIST_OFFSETS, version, request).topics
    return topic.partitions[0]


def committed_offsets(
    client: TransactionClient,
    version: int = 9,
    *,
    require_stable: bool = False,
    partitions: Partitions | None = None,
) -> Response:
    """The offsets of the test's group, of all partitions by default."""
    topics = partitions and [
        OffsetsToFetch(name=topic, topic_id=topic_id(topic), partitions=list(indexes))
        for topic, indexes in partitions.items()
    ]
    request = OffsetFetchRequest(
        group_id=client.group,
        topics=topics,
        groups=[GroupToFetch(client.group, topics=topics)],
        require_stable=require_stable,
    )
    return client.call(OFFSET_FETCH, version, request)


def describe(client: TransactionClient, *transactional_ids: str) -> Response:
    request = DescribeTransactionsRequest(list(transactional_ids) or [client.transactional_id])
    return client.call(DESCRIBE_TRANSACTIONS, 0, request)


def wait_for(client: TransactionClient, state: str, transactional_id: str | None = None) -> None:
    """Wait for a state of the transaction, then compare its description."""
    id_ = client.transactional_id if transactional_id is None else transactional_id

    def condition(response: Response) -> bool:
        (found,) = response.transactions
        return bool(found.transaction_state == state)

    request = DescribeTransactionsRequest([id_])
    client.wait_until(DESCRIBE_TRANSACTIONS, 0, request, condition)
    describe(client, id_)


def settled(client: TransactionClient) -> Response:
    """Wait until a decided transaction is complete, then compare its description."""

    def condition(response: Response) -> bool:
        (found,) = response.transactions
        return not found.transaction_state.startswith("Prepare")

    request = DescribeTransactionsRequest([client.transactional_id])
    client.wait_until(DESCRIBE_TRANSACTIONS, 0, request, condition)
    return describe(client)


def producers(client: TransactionClient, partitions: Sequence[int] = (0,)) -> Response:
    request = DescribeProducersRequest([TopicToDescribe(client.topic, list(partitions))])
    return client.call(DESCRIBE_PRODUCERS, 0, request)


def listed(client: TransactionClient, version: int = 2, **filters: Any) -> Response:
    return client.call(LIST_TRANSACTIONS, version, ListTransactionsRequest(**filters))


def ended(client: TransactionClient, producer: Producer, *, committed: bool = True) -> None:
    """End a classic transaction and wait until all markers are written."""
    assert end(client, producer, committed=committed).error_code == 0
    wait_for(client, "CompleteCommit" if committed else "CompleteAbort")
