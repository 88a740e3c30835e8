"""Which open transactions count as hanging."""

import asyncio

import pytest

from kafscale.admin.transactions import hanging
from kafscale.protocol.messages import describe_producers, describe_transactions
from kafscale.protocol.messages.list_transactions import ListedTransaction, ListTransactionsResponse
from kafscale.protocol.messages.metadata import MetadataResponse, PartitionMetadata, TopicMetadata

NOW_MS = 10_000_000
IDLE_MS = 60_000
PRODUCER_ID = 4000
TOPIC = "orders"


class Broker:
    """The client of a cluster of one broker, where one producer writes to partition 1.

    `producers` has the producers that each DescribeProducers request finds, in order; `transaction`
    is what the coordinator knows of the producer.
    """

    broker_ids = (1,)

    def __init__(self, producers, transaction):
        self._producers = list(producers)
        self._transaction = transaction

    async def metadata(self, _names):
        partitions = [
            PartitionMetadata(index=0, leader_id=-1),
            PartitionMetadata(index=1, leader_id=1),
        ]
        return MetadataResponse(topics=[TopicMetadata(name=TOPIC, partitions=partitions)])

    async def broker(self, _node_id):
        return self

    def serves(self, _api, _version=0):
        return True

    async def ask(self, api, request):
        return {
            "DescribeProducers": self._describe_producers,
            "ListTransactions": self._list_transactions,
            "DescribeTransactions": self._describe_transactions,
        }[api.name](request)

    def _describe_producers(self, request):
        assert [(each.name, each.partitions) for each in request.topics] == [(TOPIC, [1])]
        partition = describe_producers.DescribedPartition(
            1, active_producers=self._producers.pop(0)
        )
        topic = describe_producers.DescribedTopic(TOPIC, [partition])
        return describe_producers.DescribeProducersResponse(topics=[topic])

    def _list_transactions(self, request):
        assert request.producer_id_filters == [PRODUCER_ID]
        known = self._transaction
        return ListTransactionsResponse(
            transactions=[
                ListedTransaction(each.transactional_id, PRODUCER_ID, each.transaction_state)
                for each in ([known] if known else [])
            ]
        )

    def _describe_transactions(self, _request):
        return describe_transactions.DescribeTransactionsResponse(transactions=[self._transaction])


def producer(*, start_offset=7, idle_ms=IDLE_MS):
    return describe_producers.ActiveProducer(
        PRODUCER_ID, last_timestamp_ms=NOW_MS - idle_ms, transaction_start_offset=start_offset
    )


def transaction(state, *partitions):
    return describe_transactions.DescribedTransaction(
        transactional_id="billing",
        transaction_state=state,
        producer_id=PRODUCER_ID,
        topics=[describe_transactions.TopicInTransaction(TOPIC, list(partitions))],
    )


def find(producers, known):
    found = hanging.find(Broker(producers, known), now_ms=NOW_MS, idle_ms=IDLE_MS)
    return [
        (each.partition, each.start_offset, each.transactional_id) for each in asyncio.run(found)
    ]


@pytest.mark.parametrize(
    ("known", "transactional_id"),
    [
        (None, None),
        (transaction("CompleteCommit"), "billing"),
        (transaction("Ongoing", 0), "billing"),
    ],
    ids=["unknown", "ended", "in another partition"],
)
def test_a_transaction_that_no_coordinator_will_end_hangs(known, transactional_id):
    assert find([[producer()], [producer()]], known) == [(1, 7, transactional_id)]


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort"])
def test_a_transaction_that_its_coordinator_will_end_does_not_hang(state):
    assert find([[producer()], []], transaction(state, 0, 1)) == []


@pytest.mark.parametrize(
    "last", [producer(idle_ms=IDLE_MS - 1), producer(start_offset=-1)], ids=["recent", "ended"]
)
def test_recent_and_ended_transactions_are_not_looked_up(last):
    assert find([[last]], None) == []


def test_a_transaction_that_ends_during_the_search_does_not_hang():
    ended, next_one = producer(start_offset=-1), producer(start_offset=12)
    for again in ([ended], [next_one], []):
        assert find([[producer()], again], None) == []
