"""A cluster of one broker that responds from a script, and records requests."""

from collections import defaultdict, deque

from kafscale.net.address import Address
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import add_partitions_to_txn, find_coordinator, txn_offset_commit
from kafscale.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafscale.protocol.messages.end_txn import EndTxnResponse
from kafscale.protocol.messages.init_producer_id import InitProducerIdResponse
from kafscale.protocol.messages.metadata import PartitionMetadata, TopicMetadata
from kafscale.protocol.messages.produce import ProducedPartition, ProducedTopic, ProduceResponse
from kafscale.records import BatchView

TOPIC = "orders"
PRODUCER_ID = 4000


class ScriptedCluster:
    """The client of such a cluster; by default, every request succeeds.

    `script["EndTxn"]` has what happens to the next EndTxn requests: the error code of the response,
    or an exception that is raised instead.
    """

    def __init__(self, *, level):
        self.script = defaultdict(deque)
        self.requests = []
        """The names, versions and requests, without those that find topics and coordinators."""
        self.address = Address("broker", 9092)
        self.is_open = True
        self._level = level
        self._epoch = -1

    def named(self, name):
        """The requests of an API."""
        return [request for each, _, request in self.requests if each == name]

    def names(self):
        return [name for name, _, _ in self.requests]

    def sequences(self):
        """The epoch and the base sequence of each batch that was sent."""
        batches = [
            BatchView(request.topics[0].partitions[0].records) for request in self.named("Produce")
        ]
        return [(batch.producer_epoch, batch.base_sequence) for batch in batches]

    # --- the client -------------------------------------------------------------------------------

    async def any_broker(self):
        return self

    async def broker(self, _node_id):
        return self

    async def connect(self, _address):
        return self

    async def topic(self, name, **_options):
        assert name == TOPIC
        partitions = [PartitionMetadata(index=each, leader_id=1) for each in (0, 1)]
        return TopicMetadata(name=name, topic_id=bytes(16), partitions=partitions)

    # --- the connection ---------------------------------------------------------------------------

    def close(self):
        pass

    def feature_level(self, _name):
        return self._level

    async def ask(self, api, request, *, version_max=None, **_options):
        if api.name == "FindCoordinator":
            found = find_coordinator.Coordinator("", 1, "broker", 9092, 0, None)
            return find_coordinator.FindCoordinatorResponse(coordinators=[found])
        self.requests.append((api.name, version_max or api.version_max, request))
        planned = self.script[api.name].popleft() if self.script[api.name] else ErrorCode.NONE
        if isinstance(planned, Exception):
            raise planned
        respond = {
            "InitProducerId": self._init_producer_id,
            "AddPartitionsToTxn": self._add_partitions_to_txn,
            "AddOffsetsToTxn": self._add_offsets_to_txn,
            "TxnOffsetCommit": self._txn_offset_commit,
            "EndTxn": self._end_txn,
            "Produce": self._produce,
        }
        return respond[api.name](request, planned)

    def _init_producer_id(self, _request, code):
        self._epoch += code == ErrorCode.NONE
        return InitProducerIdResponse(
            error_code=code, producer_id=PRODUCER_ID, producer_epoch=self._epoch
        )

    def _end_txn(self, _request, code):
        if self._level < 2:
            return EndTxnResponse(error_code=code)
        self._epoch += code == ErrorCode.NONE
        return EndTxnResponse(error_code=code, producer_id=PRODUCER_ID, producer_epoch=self._epoch)

    def _add_partitions_to_txn(self, request, code):
        added = [
            add_partitions_to_txn.AddedTopic(
                topic.name,
                [add_partitions_to_txn.AddedPartition(each, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
        return add_partitions_to_txn.AddPartitionsToTxnResponse(topics=added)

    def _add_offsets_to_txn(self, _request, code):
        return AddOffsetsToTxnResponse(error_code=code)

    def _txn_offset_commit(self, request, code):
        topics = [
            txn_offset_commit.CommittedTopic(
                topic.name,
                [
                    txn_offset_commit.CommittedPartition(each.index, code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return txn_offset_commit.TxnOffsetCommitResponse(topics=topics)

    def _produce(self, request, code):
        produced = ProducedPartition(request.topics[0].partitions[0].index, code)
        return ProduceResponse(topics=[ProducedTopic(TOPIC, partitions=[produced])])
