"""TxnOffsetCommit: offsets that are committed with a transaction."""

import asyncio
import dataclasses

import msgspec
import pytest

from doubles import virtual_time
from kafscale.broker.group_coordinator.commit_limits import MUTE_MS
from kafscale.metadata.schema.model import shard_of
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
)
from kafscale.text.units import KIB
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.handlers.metadata_writes import MetadataWrites
from unit.broker.handlers.offset_commits import commit
from unit.broker.in_memory_broker import CONFIG, Stores, run_with_broker, running_broker

ID = "billing"
OK = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
NEWEST = TXN_OFFSET_COMMIT.version_max
ADDS_GROUP_SINCE = 5

every_version = pytest.mark.parametrize("version", TXN_OFFSET_COMMIT.versions)


class Producer:
    """A transactional producer."""

    def __init__(self, broker, version=NEWEST):
        self.broker = broker
        self.version = version
        self.producer_id = self.epoch = -1

    async def begin(self):
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        response = await self.broker.ask(INIT_PRODUCER_ID, request)
        while response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            await asyncio.sleep(0.1)
            response = await self.broker.ask(INIT_PRODUCER_ID, request)
        assert response.error_code == OK
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch

    async def add(self, group_id=GROUP):
        """Add the offsets of a group to the transaction, as is necessary before v5."""
        if self.version < ADDS_GROUP_SINCE:
            request = AddOffsetsToTxnRequest(ID, self.producer_id, self.epoch, group_id)
            response = await self.broker.ask(ADD_OFFSETS_TO_TXN, request, 3)
            assert response.error_code == OK

    async def send(self, *topics, client=None, **fields):
        request = TxnOffsetCommitRequest(
            **{
                "transactional_id": ID,
                "group_id": GROUP,
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "topics": list(topics),
                **fields,
            }
        )
        return await self.broker.ask(TXN_OFFSET_COMMIT, request, self.version, client=client)

    async def commit(self, offsets, **fields):
        """Commit offsets by topic and partition; returns the error codes."""
        topics = [
            TopicToCommit(topic, [PartitionToCommit(*each) for each in partitions.items()])
            for topic, partitions in offsets.items()
        ]
        response = await self.send(*topics, **fields)
        return {
            (topic.name, each.index): ErrorCode.of(each.error_code)
            for topic in response.topics
            for each in topic.partitions
        }

    async def end(self, *, commits=True):
        request = EndTxnRequest(ID, self.producer_id, self.epoch, commits)
        version = END_TXN.version_max if self.version >= ADDS_GROUP_SINCE else 4
        response = await self.broker.ask(END_TXN, request, version)
        assert response.error_code == OK
        if version >= 5:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        await asyncio.sleep(1)


async def producer(broker, version=NEWEST, partition_count=3):
    await broker.topic("orders", partition_count)
    started = Producer(broker, version)
    await started.begin()
    return started


async def fetch(broker, *partitions, require_stable=True, version=OFFSET_FETCH.version_max):
    """Offset and error by partition; of all partitions if none is given."""
    topic = broker.services.topic_store.topics["orders"]
    topics = [TopicToFetch(topic.name, topic.id, list(partitions))] if partitions else None
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=topics,
        groups=[GroupToFetch(group_id=GROUP, topics=topics)],
        require_stable=require_stable,
    )
    response = await broker.ask(OFFSET_FETCH, request, version)
    [group] = response.groups if version >= 8 else [response]
    assert group.error_code == OK
    return {
        each.index: (each.committed_offset, ErrorCode.of(each.error_code))
        for found in group.topics
        for each in found.partitions
    }


@every_version
@pytest.mark.parametrize("commits", [True, False])
def test_offsets_are_committed_with_the_transaction(version, commits):
    async def body(broker):
        started = await producer(broker, version)
        for offset in (10, 20):
            await started.add()
            codes = await started.commit({"orders": {0: offset}})
            codes |= await started.commit({"orders": {0: offset + 1, 1: offset}})
            assert codes == {("orders", 0): OK, ("orders", 1): OK}
            before = await fetch(broker, 0, require_stable=False)
            assert before[0][0] == (11 if commits and offset == 20 else -1)
            await started.end(commits=commits)
            after = await fetch(broker, 0, 1)
            expected = {0: (offset + 1, OK), 1: (offset, OK)}
            assert after == (expected if commits else {0: (-1, OK), 1: (-1, OK)})

    run_with_broker(body)


@pytest.mark.parametrize("version", range(7, OFFSET_FETCH.version_max + 1))
def test_pending_offsets_are_unstable(version):
    async def body(broker):
        started = await producer(broker)
        await commit(
            broker,
            broker.services.topic_store.topics["orders"],
            PartitionToCommit(0, 5),
            PartitionToCommit(2, 7),
            version=5,
        )
        await started.commit({"orders": {0: 10, 1: 11}})
        unstable, stable = (-1, UNSTABLE), (7, OK)
        fetched = await fetch(broker, 0, 1, 2, version=version)
        assert fetched == {0: unstable, 1: unstable, 2: stable}
        # As in Kafka, all partitions are those with a committed offset.
        assert await fetch(broker, version=version) == {0: unstable, 2: stable}
        fetched = await fetch(broker, 0, 1, 2, version=version, require_stable=False)
        assert fetched == {0: (5, OK), 1: (-1, OK), 2: stable}
        await started.end()
        assert await fetch(broker, version=version) == {0: (10, OK), 1: (11, OK), 2: stable}

    run_with_broker(body)


@every_version
def test_group_has_to_be_in_the_transaction(version):
    async def body(broker):
        started = await producer(broker, version)
        code = {
            5: OK,  # It is added.
            4: ErrorCode.TRANSACTION_ABORTABLE,
        }.get(version, ErrorCode.INVALID_TXN_STATE)
        assert await started.commit({"orders": {0: 10}}) == {("orders", 0): code}
        assert broker.services.groups.list() == [] or version == 5

    run_with_broker(body)


@every_version
def test_fenced_producer_commits_nothing(version):
    async def body(broker):
        zombie = await producer(broker, version)
        await zombie.add()
        assert await zombie.commit({"orders": {0: 10}}) == {("orders", 0): OK}
        new = Producer(broker, version)
        await new.begin()
        await asyncio.sleep(1)
        assert await fetch(broker, 0) == {0: (-1, OK)}
        codes = await zombie.commit({"orders": {0: 10}})
        assert codes == {("orders", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        assert broker.services.groups.unstable_offsets(GROUP) == set()

    run_with_broker(body)


@every_version
def test_invalid_offsets_are_left_out(version):
    async def body(broker):
        started = await producer(broker, version)
        await started.add()
        long = "m" * (broker.services.config.offsets.metadata_bytes_max + 1)
        orders = [
            PartitionToCommit(0, 10, metadata=None),
            PartitionToCommit(1, 10, metadata=long),
            PartitionToCommit(3, 10),
        ]
        response = await started.send(
            TopicToCommit("missing", [PartitionToCommit(0, 1)]),
            TopicToCommit("orders", orders),
            TopicToCommit("orders"),
        )
        codes = [
            [ErrorCode.of(each.error_code) for each in topic.partitions]
            for topic in response.topics
        ]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [[unknown], [OK, ErrorCode.OFFSET_METADATA_TOO_LARGE, unknown]]
        await started.end()
        assert await fetch(broker) == {0: (10, OK)}

    run_with_broker(body)


@every_version
def test_errors_of_the_group_are_returned_for_partitions_that_exist(version):
    async def body(broker):
        started = await producer(broker, version)
        await started.add()
        offsets = {"orders": {0: 10}, "missing": {0: 10}}
        missing = {("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        for fields, code in [
            ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
            ({"group_id": "g" * 2000}, ErrorCode.INVALID_GROUP_ID),
            ({"transactional_id": "another"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            ({"producer_id": 77}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ]:
            codes = await started.commit(offsets, **fields)
            assert codes == {("orders", 0): code, **missing}
        # Nothing is verified if nothing can be committed.
        codes = await started.commit({"missing": {0: 1}}, producer_id=77)
        assert codes == missing
        broker.services.groups.shut_down()
        codes = await started.commit(offsets)
        assert codes == {("orders", 0): ErrorCode.NOT_COORDINATOR, **missing}

    run_with_broker(body)


@pytest.mark.parametrize("version", range(3, NEWEST + 1))
def test_members_are_checked(version):
    async def body(broker):
        started = await producer(broker, version)
        await started.add()
        topic = {"orders": {0: 10}}

        async def code(**fields):
            return (await started.commit(topic, **fields))["orders", 0]

        assert await code(generation_id=1, member_id="a") == ErrorCode.ILLEGAL_GENERATION
        member = Member(broker)
        await form_generation(member)
        named = {"member_id": member.member_id, "generation_id": member.generation}
        assert await code(**named) == OK
        assert await code() == OK
        assert await code(**{**named, "generation_id": 9}) == ErrorCode.ILLEGAL_GENERATION
        assert await code(**{**named, "member_id": "b"}) == ErrorCode.UNKNOWN_MEMBER_ID
        await member.leave()
        newer = ConsumerMember(broker, "newer")
        await newer.join("orders")
        named = {"member_id": "newer", "generation_id": newer.epoch}
        assert await code(**named) == OK
        assert await code(**{**named, "generation_id": 9}) == ErrorCode.ILLEGAL_GENERATION

    run_with_broker(body)


def test_offsets_above_the_limit_wait_or_are_refused():
    limits = dataclasses.replace(CONFIG.offsets, group_commit_bytes_per_second=10 * KIB)

    async def body(broker):
        started = await producer(broker, 0, partition_count=12)
        await started.add()

        def large(count):
            partitions = [PartitionToCommit(each, 1, metadata="m" * 4000) for each in range(count)]
            return TopicToCommit("orders", partitions)

        loop = asyncio.get_running_loop()
        before = loop.time()
        for count in (6, 3):
            response = await started.send(large(count))
            assert {each.error_code for each in response.topics[0].partitions} == {OK}
        assert loop.time() - before > 1
        await asyncio.sleep(60)
        await started.send(large(12))
        client = msgspec.structs.replace(broker.client)
        response = await started.send(large(1), client=client)
        # Old clients do not expect that the coordinator is loading.
        unavailable = {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert {each.error_code for each in response.topics[0].partitions} == unavailable
        assert client.throttled_ms == response.throttle_time_ms == MUTE_MS

    run_with_broker(body, config=dataclasses.replace(CONFIG, offsets=limits))


def test_what_is_written_counts():
    async def body(broker):
        started = await producer(broker, partition_count=500)
        assert await started.commit({"orders": {0: 1}}) == {("orders", 0): OK}
        writes = MetadataWrites(broker)
        await started.commit({"orders": dict.fromkeys(range(500), 10)})
        for offset in range(500):
            await started.commit({"orders": {offset: offset}})
        await started.end()
        assert writes.written_bytes < writes.charged_bytes < 6 * writes.written_bytes

    run_with_broker(body)


def test_transaction_survives_a_restart():
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            started = await producer(broker)
            await started.commit({"orders": {0: 10, 1: 11}})
        async with running_broker(stores) as broker:
            started.broker = broker
            assert await fetch(broker, 0) == {0: (-1, UNSTABLE)}
            [opened] = broker.services.groups.open_transactions(shard_of(GROUP))
            assert opened[:2] == (started.producer_id, started.epoch)
            assert await started.commit({"orders": {2: 12}}) == {("orders", 2): OK}
            await started.end()
            assert await fetch(broker) == {0: (10, OK), 1: (11, OK), 2: (12, OK)}

    virtual_time.run(scenario, seed=0)
