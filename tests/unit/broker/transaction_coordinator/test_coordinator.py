"""Transactions on brokers that do not crash: writes, responses, markers and errors."""

import asyncio

import pytest

from doubles.faulty_metadata_store import NO_METADATA_FAULTS, MetadataFaults
from kafscale.broker.transaction_coordinator.verification import RETRY_SECONDS
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.protocol.error_codes import ErrorCode
from kafscale.transactions.model import TransactionState
from unit.broker.transaction_coordinator.transactional_cluster import (
    TOPIC,
    TransactionCluster,
    simulate,
)
from unit.broker.transaction_coordinator.transactional_producer import (
    RejectedError,
    TransactionalProducer,
)

BOTH = [(TOPIC, 0), (TOPIC, 1)]
both_versions = pytest.mark.parametrize("is_classic", [False, True], ids=["v2", "classic"])


async def start_two(cluster: TransactionCluster) -> str:
    """Start two brokers, each with a partition; returns a transactional id of the first."""
    await cluster.start(1)
    await cluster.start(2)
    await cluster.brokers[1].services.topics.create(
        TOPIC, 2, {}, 10_000, replicas={0: (1, 2), 1: (2, 1)}
    )
    await cluster.wait_until_balanced()
    return await cluster.id_at(1)


def run_with_two(body):
    async def prepared(cluster):
        await body(cluster, await start_two(cluster))

    simulate(prepared)


async def initialized(cluster, transactional_id, **options):
    producer = TransactionalProducer(cluster, transactional_id, **options)
    await producer.initialize()
    return producer


@both_versions
def test_transaction_takes_two_writes(is_classic):
    """One when its first partitions are added, one for its outcome; completion waits for others."""

    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id, is_classic=is_classic)
        connection = cluster.connections[1]
        for number in range(10):
            before = connection.transaction_commits
            await producer.send(TOPIC, 0, b"%d" % number)
            for _ in range(3):
                await producer.send_without_adding(TOPIC, 0, b"%d" % number)
            await producer.end(is_commit=number % 2 == 0)
            assert connection.transaction_commits - before == 2

    run_with_two(body)


@pytest.mark.parametrize("is_classic", [False, True], ids=["v2", "classic"])
@pytest.mark.parametrize("failure", [StoreUnavailableError("cut"), RuntimeError("unexpected")])
def test_commit_is_answered_before_its_markers_and_hidden_until_then(failure, is_classic):
    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id, is_classic=is_classic)
        for topic, partition in BOTH:
            await producer.send(topic, partition, b"value")
        cluster.failures[2] = failure
        await producer.end(is_commit=True)
        assert (await cluster.record(transactional_id)).state is TransactionState.PREPARE_COMMIT
        await asyncio.sleep(0.1)
        log = await cluster.log(TOPIC, 1)
        assert log.last_stable_offset == 0 < log.high_watermark
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await producer.send(TOPIC, 0, b"next")
        cluster.failures.clear()
        await cluster.wait_until_ended(BOTH)
        assert [await cluster.committed_values(*each) for each in BOTH] == [[b"value"]] * 2

    run_with_two(body)


def test_next_transaction_waits_at_the_leader_for_the_last_markers():
    """The producer's own retries would take longer than the markers."""

    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id)
        await producer.send(TOPIC, 0, b"first")
        await producer.send(TOPIC, 1, b"first")
        cluster.call_seconds = 0.3
        await producer.end(is_commit=True)
        producer.codes.clear()
        await producer.send(TOPIC, 0, b"second")
        assert producer.codes == [ErrorCode.NONE]

    run_with_two(body)


def test_next_transaction_begins_as_soon_as_the_last_one_has_ended():
    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(20):
            await producer.send(TOPIC, 0, b"%d" % number)
            await producer.send(TOPIC, 1, b"%d" % number)
            await producer.end(is_commit=True)
        assert (loop.time() - began) / 20 < RETRY_SECONDS, "the leader waits, and asks again"

    run_with_two(body)


def test_marker_that_arrives_twice_does_not_end_the_next_transaction():
    """The network may deliver a request after its sender has given it up, and sent it again."""

    async def body(cluster, transactional_id):
        group = await cluster.id_at(2, "readers")
        partitions = [(TOPIC, 1), (SHARDS_TOPIC, shard_of(group))]
        producer = await initialized(cluster, transactional_id)
        await producer.send(TOPIC, 1, b"first")
        await producer.commit_offset(group, TOPIC, 1)
        await producer.end(is_commit=True)
        await cluster.wait_until_ended(partitions)
        await producer.send(TOPIC, 1, b"second")
        await producer.commit_offset(group, TOPIC, 2)
        [(broker_id, marker)] = cluster.markers
        codes = await cluster.call(
            broker_id, lambda broker: broker.services.transactions.write_markers([marker])
        )
        assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2
        await producer.end(is_commit=False)
        await cluster.wait_until_ended(partitions)
        assert await cluster.committed_values(TOPIC, 1) == [b"first"]
        assert await cluster.committed_offset(group) == 1

    run_with_two(body)


def test_owner_changes_while_markers_are_written():
    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id)
        for number in range(5):
            value = b"%d" % number
            for topic, partition in BOTH:
                await producer.send(topic, partition, value)
            owner = await cluster.owner(TOPIC, 1)
            cluster.call_seconds = 0.05 * number
            draining = asyncio.create_task(owner.node.drainer.drain([(TOPIC, 1)], 10))
            await producer.end(is_commit=number != 2)
            drained, pending = await draining
            assert (len(drained), len(pending)) == (1, 0)
        await cluster.wait_until_ended(BOTH)
        for topic_partition in BOTH:
            values = await cluster.committed_values(*topic_partition)
            assert values == [b"0", b"1", b"3", b"4"]

    run_with_two(body)


def test_shard_moves_while_markers_are_written():
    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id)
        shard = (SHARDS_TOPIC, shard_of(transactional_id))
        for number in range(5):
            await producer.send(TOPIC, 1, b"%d" % number)
            await producer.send(TOPIC, 0, b"%d" % number)
            owner = await cluster.coordinator(transactional_id)
            cluster.call_seconds = 0.05 * number
            draining = asyncio.create_task(owner.node.drainer.drain([shard], 10))
            await producer.end(is_commit=True)
            await draining
        await cluster.wait_until_ended(BOTH)
        for topic_partition in BOTH:
            assert len(await cluster.committed_values(*topic_partition)) == 5

    run_with_two(body)


@pytest.mark.parametrize("is_smaller", [False, True])
def test_markers_of_a_deleted_topic_are_not_needed(is_smaller):
    async def body(cluster, transactional_id):
        services = cluster.brokers[1].services
        await services.topics.create("old", 2, {}, 10_000, replicas={0: (2,), 1: (2,)})
        producer = await initialized(cluster, transactional_id)
        await producer.send(TOPIC, 0, b"kept")
        await producer.send("old", 1, b"deleted")
        await services.topic_store.delete("old")
        if is_smaller:
            await services.topics.create("old", 1, {}, 60_000)
        await producer.end(is_commit=True)
        await cluster.wait_until_ended([(TOPIC, 0)])
        assert await cluster.committed_values(TOPIC, 0) == [b"kept"]
        await producer.send(TOPIC, 0, b"next")
        await producer.end(is_commit=True)
        await asyncio.sleep(2)
        assert (await cluster.record(transactional_id)).state is TransactionState.COMPLETE_COMMIT

    run_with_two(body)


@both_versions
def test_transaction_that_is_open_for_too_long_is_aborted(is_classic):
    async def body(cluster, transactional_id):
        producer = await initialized(
            cluster, transactional_id, is_classic=is_classic, timeout_ms=10_000
        )
        started = asyncio.get_running_loop().time()
        await producer.send(TOPIC, 0, b"late")
        await producer.send(TOPIC, 1, b"late")
        await asyncio.sleep(9)
        log = await cluster.log(TOPIC, 1)
        assert log.last_stable_offset == 0
        await cluster.wait_until_ended(BOTH)
        assert 10 <= asyncio.get_running_loop().time() - started < 11
        assert [await cluster.committed_values(*each) for each in BOTH] == [[], []]
        with pytest.raises(RejectedError) as rejected:
            await producer.end(is_commit=True)
        is_ended = ErrorCode.PRODUCER_FENCED if is_classic else ErrorCode.INVALID_TXN_STATE
        assert rejected.value.code is is_ended
        with pytest.raises(RejectedError) as rejected:
            await producer.send_without_adding(TOPIC, 0, b"zombie")
        assert rejected.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert cluster.brokers[1].services.metrics.transactions.timed_out == 1

    run_with_two(body)


@both_versions
def test_producers_of_one_id_fence_each_other(is_classic):
    async def body(cluster, transactional_id):
        committed, errors = [], set()
        producers = [
            TransactionalProducer(cluster, transactional_id, is_classic=is_classic)
            for _ in range(3)
        ]

        async def produce(number, producer):
            for attempt in range(8):
                value = b"%d-%d" % (number, attempt)
                try:
                    if producer.epoch < 0 or attempt % 3 == 0:
                        await producer.initialize()
                    await producer.send(TOPIC, 0, value)
                    await asyncio.sleep(0.05 * number)
                    await producer.send(TOPIC, 1, value)
                    await producer.end(is_commit=True)
                    committed.append(value)
                except RejectedError as error:
                    producer.epoch = -1
                    errors.add(error.code)

        await asyncio.gather(*map(produce, range(3), producers))
        await cluster.wait_until_ended(BOTH)
        first, second = [await cluster.committed_values(*each) for each in BOTH]
        assert first == second == committed
        assert 0 < len(committed) < 24
        assert errors
        assert errors <= {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}

    run_with_two(body)


def test_unused_ids_expire():
    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id)
        await producer.send(TOPIC, 0, b"value")
        await producer.end(is_commit=True)
        key = keys.transactional_id(transactional_id)
        coordinator = cluster.brokers[1].services.transactions.coordinator
        metadata = cluster.stores.metadata
        await asyncio.sleep(coordinator.settings.id_expiration_ms / 1000 - 10)
        assert await metadata.get(key) is not None
        await asyncio.sleep(coordinator.settings.expiration_interval_ms / 1000 + 20)
        assert await metadata.get(key) is None
        assert transactional_id not in [each.transactional_id for each in coordinator]
        with pytest.raises(RejectedError) as rejected:
            await producer.send(TOPIC, 0, b"value")
        assert rejected.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        again = await initialized(cluster, transactional_id)
        assert (again.producer_id, again.epoch) == (producer.producer_id + 1, 0)

    run_with_two(body)


def test_late_commits_of_the_store_undo_nothing():
    """The store applies commits that it has refused later, also minutes later."""

    async def body(cluster, transactional_id):
        producer = await initialized(cluster, transactional_id, timeout_ms=900_000)
        expected = []
        faults = MetadataFaults(refused=0.05, response_lost=0.05, applied_later=0.1)
        for number in range(30):
            for connection in cluster.connections.values():
                connection.change(faults if number % 3 else NO_METADATA_FAULTS)
            value = b"%d" % number
            await producer.send(TOPIC, 0, value)
            await producer.send(TOPIC, 1, value)
            await producer.end(is_commit=number % 4 > 0)
            expected += [value] * (number % 4 > 0)
        for connection in cluster.connections.values():
            connection.change(NO_METADATA_FAULTS)
            await connection.wait_for_late_requests()
        await cluster.wait_until_ended(BOTH)
        await cluster.crash(1)
        await cluster.wait_until_ended(BOTH)
        assert [await cluster.committed_values(*each) for each in BOTH] == [expected] * 2

    run_with_two(body)
