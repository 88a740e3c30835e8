"""Which open transactions count as hanging, and may be aborted in one partition."""

import asyncio

import pytest

from kafscale.admin.transactions import coordinators, hanging, producers
from kafscale.admin.transactions.transactions import TransactionInfo, describe_listed
from kafscale.client.errors import BrokerResponseError
from kafscale.errors import InvalidRequestError
from kafscale.metadata.schema.model import SHARD_COUNT, shard_of
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import (
    describe_configs,
    describe_producers,
    describe_transactions,
    find_coordinator,
    write_txn_markers,
)
from kafscale.protocol.messages.list_transactions import ListedTransaction, ListTransactionsResponse
from kafscale.protocol.messages.metadata import MetadataResponse, PartitionMetadata, TopicMetadata

NOW_MS = 10_000_000
IDLE_MS = 60_000
PRODUCER_ID = 4000
TOPIC = "orders"
TRANSACTIONAL_ID = "billing"
SHARDS = 3


class Cluster:
    """The client of a cluster of two brokers, where one producer writes to partition 1.

    `producers` has the producers that each DescribeProducers request finds, in order; `transaction`
    is what the coordinator knows of the producer. `owners` has the broker that coordinates all
    transactions, at each request about that; the last one stays. None: there is no coordinator.
    """

    broker_ids = (1, 2)

    def __init__(self, producers, transaction, owners=(1,), timeout_ms_max=IDLE_MS):
        self._producers = list(producers)
        self._transaction = transaction
        self._owners = list(owners)
        self._timeout_ms_max = timeout_ms_max
        self.pauses = 0
        self.markers = []

    async def metadata(self, names):
        ids = range(SHARDS) if names == [coordinators.TRANSACTION_TOPIC] else (1,)
        partitions = [PartitionMetadata(index=each, leader_id=1) for each in ids]
        partitions += [PartitionMetadata(index=SHARDS, leader_id=-1)] if names is None else []
        name = names[0] if names else TOPIC
        return MetadataResponse(topics=[TopicMetadata(name=name, partitions=partitions)])

    async def topic(self, name):
        return (await self.metadata([name])).topics[0]

    async def any_broker(self):
        return Connection(self, 1)

    async def broker(self, node_id):
        return Connection(self, node_id)

    async def connect(self, address):
        return Connection(self, address.port)

    async def pause(self, _seconds):
        self.pauses += 1

    def answer(self, node_id, api, request):
        match api.name:
            case "DescribeProducers":
                return self._describe_producers(request)
            case "DescribeConfigs":
                return self._describe_configs(request, node_id)
            case "WriteTxnMarkers":
                self.markers += request.markers
                return write_txn_markers.WriteTxnMarkersResponse()
        owner = self._owners.pop(0) if len(self._owners) > 1 else self._owners[0]
        match api.name:
            case "FindCoordinator":
                return _find_coordinators(request, owner)
            case "ListTransactions":
                return self._list_transactions(request, is_owner=owner == node_id)
            case "DescribeTransactions":
                return self._describe_transactions(request, is_owner=owner == node_id)
        raise AssertionError(api.name)

    def _describe_producers(self, request):
        assert [(each.name, each.partitions) for each in request.topics] == [(TOPIC, [1])]
        partition = describe_producers.DescribedPartition(
            1, active_producers=self._producers.pop(0)
        )
        topic = describe_producers.DescribedTopic(TOPIC, [partition])
        return describe_producers.DescribeProducersResponse(topics=[topic])

    def _describe_configs(self, request, node_id):
        (asked,) = request.resources
        assert (asked.resource_type, asked.resource_name) == (4, str(node_id))
        value = describe_configs.DescribedConfig(asked.config_names[0], str(self._timeout_ms_max))
        resource = describe_configs.DescribedResource(configs=[value])
        return describe_configs.DescribeConfigsResponse(resources=[resource])

    def _list_transactions(self, request, *, is_owner):
        assert request.producer_id_filters == [PRODUCER_ID]
        known = self._transaction
        return ListTransactionsResponse(
            transactions=[
                ListedTransaction(each.transactional_id, PRODUCER_ID, each.transaction_state)
                for each in ([known] if known and is_owner else [])
            ]
        )

    def _describe_transactions(self, request, *, is_owner):
        unknown = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if is_owner else ErrorCode.NOT_COORDINATOR
        return describe_transactions.DescribeTransactionsResponse(
            transactions=[
                self._transaction
                if is_owner and each == TRANSACTIONAL_ID
                else describe_transactions.DescribedTransaction(
                    transactional_id=each, error_code=unknown
                )
                for each in request.transactional_ids
            ]
        )


class Connection:
    """A connection to one of the brokers."""

    is_open = True

    def __init__(self, cluster, node_id):
        self._cluster = cluster
        self._node_id = node_id

    def serves(self, _api, _version=0):
        return True

    async def ask(self, api, request, **_options):
        return self._cluster.answer(self._node_id, api, request)

    def close(self):
        pass


def _find_coordinators(request, owner):
    if request.keys != [TRANSACTIONAL_ID]:
        assert {ord(each) % SHARDS for each in request.keys} == set(range(SHARDS))
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if owner is None else ErrorCode.NONE
    return find_coordinator.FindCoordinatorResponse(
        coordinators=[
            find_coordinator.Coordinator(each, owner or -1, "host", owner or -1, code)
            for each in request.keys
        ]
    )


def producer(*, start_offset=7, idle_ms=IDLE_MS):
    return describe_producers.ActiveProducer(
        PRODUCER_ID, last_timestamp_ms=NOW_MS - idle_ms, transaction_start_offset=start_offset
    )


def transaction(state, *partitions):
    return describe_transactions.DescribedTransaction(
        transactional_id=TRANSACTIONAL_ID,
        transaction_state=state,
        producer_id=PRODUCER_ID,
        topics=[describe_transactions.TopicInTransaction(TOPIC, list(partitions))],
    )


def find(producers, known):
    return found_in(Cluster(producers, known), IDLE_MS)


def found_in(cluster, idle_ms):
    found = hanging.find(cluster, now_ms=NOW_MS, idle_ms=idle_ms, pause=cluster.pause)
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


@pytest.mark.parametrize(
    "owners",
    [(None, None, 1), (1, None, 1), (1, 1, 1, 1, 2), (2, 2, 2, 1)],
    ids=["has no owner", "is loaded", "moves after the list", "moves during the list"],
)
def test_no_live_transaction_hangs_while_its_coordinator(owners):
    cluster = Cluster([[producer()], [producer()]], transaction("Ongoing", 1), owners)
    assert found_in(cluster, IDLE_MS) == []
    assert cluster.pauses >= 1


def test_nothing_is_reported_without_a_coordinator():
    with pytest.raises(BrokerResponseError, match="COORDINATOR_NOT_AVAILABLE"):
        found_in(Cluster([[producer()]], None, [None]), IDLE_MS)


@pytest.mark.parametrize(("timeout_min", "idle_min"), [(60, 60), (1, 15)])
def test_a_transaction_hangs_after_the_longest_timeout_of_the_cluster(timeout_min, idle_min):
    def found(idle_ms):
        active = [producer(idle_ms=idle_ms)]
        return found_in(Cluster([active] * 2, None, timeout_ms_max=timeout_min * 60_000), None)

    assert found(idle_min * 60_000 - 1) == []
    assert found(idle_min * 60_000) == [(1, 7, None)]


def test_a_listed_transaction_that_has_moved_is_described_by_its_new_coordinator():
    listed = TransactionInfo(TRANSACTIONAL_ID, 1, PRODUCER_ID, "Ongoing")
    described = describe_listed(Cluster([], transaction("Ongoing", 1), [2]), [listed])
    assert [(each.coordinator, each.state) for each in asyncio.run(described)] == [(2, "Ongoing")]


def test_a_key_of_each_shard_is_asked_for():
    assert [shard_of(each) for each in coordinators.keys_of_all(SHARD_COUNT)] == list(
        range(SHARD_COUNT)
    )


def test_only_a_hanging_transaction_is_aborted_in_its_partition():
    written = []

    def abort(producers_then, known):
        cluster = Cluster([[producer()], producers_then], known)
        cluster.markers = written
        asyncio.run(producers.abort_at(cluster, TOPIC, 1, 7))

    with pytest.raises(InvalidRequestError, match=f"transactional id, {TRANSACTIONAL_ID}"):
        abort([producer()], transaction("PrepareCommit", 1))
    with pytest.raises(InvalidRequestError, match="no open transaction"):
        abort([producer(start_offset=12)], None)
    assert written == []
    abort([producer()], transaction("CompleteCommit"))
    assert [(each.producer_id, each.committed) for each in written] == [(PRODUCER_ID, False)]
