"""Several brokers over the same stores, in simulated time: everything is real but the network."""

import asyncio
from contextlib import AsyncExitStack

from doubles import virtual_time
from doubles.faulty_object_store import Fault, Rule
from kafscale.errors import NotOwnerError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_partition_state
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.storage.segments.segment_writer import RollReason
from unit.broker.cluster.unreachable_store import UnreachableStore
from unit.broker.in_memory_broker import CONFIG, Stores, running_broker
from unit.storage.engines import values_batch

LEASE_SECONDS = CONFIG.broker.lease_ttl_ms / 1000


def simulate(body):
    async def scenario(_random):
        async with AsyncExitStack() as stack:
            await body(Cluster(stack))

    virtual_time.run(scenario, seed=0, time_max_s=3600)


class Cluster:
    """Brokers over the same stores; each has its own connection to the metadata."""

    def __init__(self, stack):
        self._stack = stack
        self.stores = Stores()

    async def broker(self, node_id):
        stores = Stores()
        stores.objects = self.stores.objects
        stores.metadata = UnreachableStore(self.stores.metadata)
        return await self._stack.enter_async_context(running_broker(stores, node_id=node_id))

    async def dying_broker(self, node_id, body):
        """Run a broker that executes `body`, and is then killed."""
        stores = Stores()
        stores.objects = self.stores.objects
        stores.metadata = UnreachableStore(self.stores.metadata)
        async with running_broker(stores, node_id=node_id) as broker:
            await body(broker)


async def until(condition, seconds=60):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - many different things change.
            await asyncio.sleep(0.01)


def leaders(broker, topic="orders"):
    count = broker.services.topic_store.get(topic).partitions
    return [broker.services.cluster.leader(topic, number)[0] for number in range(count)]


def is_served(broker, count, topic="orders"):
    return len(broker.services.storage.logs.of_topic(topic)) == count


async def write(broker, partition, *values, topic="orders"):
    """Append one batch and wait until it is durable; return its base offset."""
    log = broker.services.storage.logs.get(topic, partition)
    appended = log.append(values_batch(values), virtual_time.clock_ms())
    await appended.durable
    return appended.base_offset


async def read(broker, partition, topic="orders"):
    """The size of all readable records, and the high watermark."""
    log = broker.services.storage.logs.get(topic, partition)
    slices, _ = await broker.services.storage.reader.read(
        log, log.start_offset, 1 << 30, first=True
    )
    return sum(map(len, slices)), log.high_watermark


def test_partitions_and_groups_are_spread_and_all_brokers_agree():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 6)
        await until(lambda: sorted(leaders(second)) == [1, 1, 1, 2, 2, 2])
        assert leaders(first) == leaders(second)
        await until(lambda: is_served(first, 3) and is_served(second, 3))
        responses = [await broker.ask(METADATA, MetadataRequest()) for broker in (first, second)]
        assert {node.node_id for node in responses[0].brokers} == {1, 2}
        assert responses[0].controller_id == responses[1].controller_id
        assert responses[0].topics == responses[1].topics
        await until(lambda: all(len(each.services.shards.served) == 25 for each in (first, second)))
        coordinators = set()
        for broker in (first, second):
            names = [f"group-{number}" for number in range(100)]
            response = await broker.ask(FIND_COORDINATOR, FindCoordinatorRequest(keys=names))
            coordinators.add(tuple(each.node_id for each in response.coordinators))
        assert len(coordinators) == 1
        assert set(coordinators.pop()) == {1, 2}

    simulate(body)


def test_takeover_of_a_dead_broker_keeps_all_acknowledged_records():
    async def body(cluster):
        second = await cluster.broker(2)
        written = {}

        async def work_and_die(first):
            await first.topic("orders", 6)
            await until(lambda: sorted(leaders(first)) == [1, 1, 1, 2, 2, 2])
            await until(lambda: is_served(first, 3))
            for partition, leader in enumerate(leaders(first)):
                if leader == 1:
                    for value in (b"a", b"b", b"c"):
                        written[partition] = await write(first, partition, value)

        await cluster.dying_broker(1, work_and_die)
        died = asyncio.get_running_loop().time()
        await until(lambda: is_served(second, 6))
        took = asyncio.get_running_loop().time() - died
        assert took < LEASE_SECONDS + 1, took
        assert leaders(second) == [2] * 6
        for partition, last_offset in written.items():
            assert (await read(second, partition))[1] == last_offset + 1 == 3
            log = second.services.storage.logs.get("orders", partition)
            assert log.leader_epoch == 1
            assert await write(second, partition, b"d") == 3

    simulate(body)


def test_two_takeovers_in_a_row_keep_the_records_of_both_owners():
    async def body(cluster):
        third = await cluster.broker(3)

        async def write_one(broker):
            if broker.services.topic_store.get("orders") is None:
                await broker.topic("orders", 2)
            await until(lambda: broker.services.node_id in leaders(broker))
            mine = leaders(broker).index(broker.services.node_id)
            await until(lambda: broker.services.storage.logs.get("orders", mine) is not None)
            await write(broker, mine, b"x")

        await cluster.dying_broker(1, write_one)
        await cluster.dying_broker(2, write_one)
        await until(lambda: is_served(third, 2))
        ends = [third.services.storage.logs.get("orders", each).high_watermark for each in (0, 1)]
        assert sum(ends) == 2

    simulate(body)


def test_drain_transfers_everything_fully_rolled():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 6)
        await until(lambda: is_served(first, 3) and is_served(second, 3))
        mine = [number for number, leader in enumerate(leaders(first)) if leader == 1]
        for partition in mine:
            await write(first, partition, b"a", b"b")
        began = asyncio.get_running_loop().time()
        await first.node.leave(30)
        assert asyncio.get_running_loop().time() - began < 2
        assert list(first.node.ownership.served) == []
        await until(lambda: is_served(second, 6))
        for partition in mine:
            assert (await read(second, partition))[1] == 2
            assert second.services.cluster.assignments("orders")[partition].fully_rolled
        await until(lambda: len(second.services.shards.served) == 50)

    simulate(body)


def test_partition_states_name_the_new_owner_soon_although_nothing_is_written():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 6)
        await until(lambda: is_served(first, 3) and is_served(second, 3))
        for partition, leader in enumerate(leaders(first)):
            await write({1: first, 2: second}[leader], partition, b"a")
        await first.node.leave(30)
        await until(lambda: is_served(second, 6))
        before = await stored_states(cluster)
        assert {state.leader_broker for state in before} == {"broker-1"}
        assert {state.active_segment for state in before} == {"segment-00000000000000000000.kfs"}
        await asyncio.sleep(10)
        after = await stored_states(cluster)
        assert [(state.leader_broker, state.leader_epoch) for state in after] == [
            ("broker-2", 1)
        ] * 3
        await asyncio.sleep(20)
        assert await stored_states(cluster) == after, "they are written once"

    simulate(body)


async def stored_states(cluster):
    entries = (await cluster.stores.metadata.range(keys.partition_states("orders"))).entries
    return [decode_partition_state(entry) for entry in entries]


def test_single_partitions_are_drained_to_the_least_loaded_broker():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        mine = leaders(first).index(1)
        await write(first, mine, b"a")
        drained, pending = await first.node.drainer.drain([("orders", mine)], 10)
        assert (drained, pending) == ([("orders", mine)], [])
        await until(lambda: second.services.storage.logs.get("orders", mine) is not None)
        assert (await read(second, mine))[1] == 1

    simulate(body)


def test_drain_without_other_brokers_keeps_everything():
    async def body(cluster):
        first = await cluster.broker(1)
        await first.topic("orders", 2)
        drained, pending = await first.node.drainer.drain(None, 10)
        assert (len(drained), len(pending)) == (0, 52)
        assert not first.services.registration.broker.is_draining
        assert await write(first, 0, b"a") == 0

    simulate(body)


def test_new_broker_gets_its_share_and_no_record_is_lost():
    async def body(cluster):
        first = await cluster.broker(1)
        await first.topic("orders", 8)
        for partition in range(8):
            await write(first, partition, b"a")
        second = await cluster.broker(2)
        await until(lambda: is_served(first, 4) and is_served(second, 4))
        for partition, leader in enumerate(leaders(second)):
            owner = first if leader == 1 else second
            assert (await read(owner, partition))[1] == 1
            assert await write(owner, partition, b"b") == 1

    simulate(body)


def test_broker_without_metadata_store_stops_serving_and_rejoins_in_a_new_session():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        mine = leaders(first).index(1)
        await write(first, mine, b"a")
        epoch = first.services.registration.broker.epoch
        stale = first.services.storage.logs.get("orders", mine)
        first.stores.metadata.broken = True
        await until(lambda: is_served(second, 2))
        assert not first.services.registration.lease_is_valid, (
            "it stopped before another broker took over"
        )
        assert await write(second, mine, b"b") == 1
        # Its appends cannot become durable any more.
        appended = stale.append(values_batch([b"stale"]), virtual_time.clock_ms())
        refused = (await asyncio.gather(appended.durable, return_exceptions=True))[0]
        assert isinstance(refused, NotOwnerError)
        first.stores.metadata.broken = False
        await until(lambda: first.services.registration.lease_is_valid)
        assert first.services.registration.broker.epoch > epoch
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        assert (await read(second if leaders(second)[mine] == 2 else first, mine))[1] == 2

    simulate(body)


def test_broker_that_starts_while_the_object_store_fails_joins_later():
    """Its probe succeeded: exiting would cost another start, and recover nothing."""

    async def body(cluster):
        refused = Rule(
            fault=Fault.SLOW_DOWN,
            operations=frozenset({"put", "list"}),
            keys="*/_wal/*",
            times_max=3,
        )
        cluster.stores.objects.rules.append(refused)
        broker = await cluster.broker(1)
        assert cluster.stores.objects.injected[Fault.SLOW_DOWN] == 3
        await broker.topic("orders")
        assert broker.log("orders").end_offset == 0

    simulate(body)


def test_short_metadata_outage_has_no_effect():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        epochs = [each.services.registration.broker.epoch for each in (first, second)]
        for each in (first, second):
            each.stores.metadata.broken = True
        await asyncio.sleep(LEASE_SECONDS / 3)
        assert first.services.registration.lease_is_valid
        mine = leaders(first).index(1)
        assert await write(first, mine, b"a") == 0
        for each in (first, second):
            each.stores.metadata.broken = False
        await asyncio.sleep(LEASE_SECONDS * 2)
        assert epochs == [each.services.registration.broker.epoch for each in (first, second)]
        assert is_served(first, 1)

    simulate(body)


def test_concurrent_topic_creation_on_two_brokers_loses_no_topic():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await asyncio.gather(
            *(
                broker.topic(f"topic-{broker.services.node_id}-{number}", 2)
                for number in range(10)
                for broker in (first, second)
            )
        )
        await until(lambda: len(first.services.topic_store.topics) == 20)
        for name in first.services.topic_store.topics:
            await until(lambda name=name: -1 not in leaders(second, name))

    simulate(body)


def test_deleted_topic_is_closed_on_all_brokers_and_can_be_recreated():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 4)
        await until(lambda: is_served(first, 2) and is_served(second, 2))
        for partition, leader in enumerate(leaders(first)):
            owner = first if leader == 1 else second
            await write(owner, partition, b"old")
            await owner.services.storage.roll_scheduler.roll(
                owner.services.storage.logs.get("orders", partition), RollReason.EXPLICIT
            )
        await second.services.topic_store.delete("orders")
        await until(lambda: is_served(first, 0) and is_served(second, 0))
        topic = await first.services.topics.create("orders", 4, {}, 30_000)
        await until(lambda: is_served(first, 2) and is_served(second, 2))
        for partition, leader in enumerate(leaders(first)):
            owner = first if leader == 1 else second
            log = owner.services.storage.logs.get("orders", partition)
            assert (log.topic_id, log.high_watermark) == (topic.id, 0)

    simulate(body)


def test_wrong_broker_returns_the_current_leader():
    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        foreign = leaders(first).index(2)
        topic_id = first.services.topic_store.get("orders").id
        records = memoryview(values_batch([b"value"]).buffer)
        sent = TopicToProduce(
            topic_id=topic_id, partitions=[PartitionToProduce(index=foreign, records=records)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=1000, topics=[sent])
        response = await first.ask(PRODUCE, request)
        produced = response.topics[0].partitions[0]
        assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (produced.current_leader.leader_id, produced.current_leader.leader_epoch) == (2, 0)
        assert [(each.node_id, each.host) for each in response.node_endpoints] == [(2, "broker-2")]
        desired = TopicToFetch(
            topic_id=topic_id, partitions=[PartitionToFetch(index=foreign, max_bytes=1000)]
        )
        fetched = await first.ask(FETCH, FetchRequest(max_wait_ms=0, topics=[desired]))
        assert fetched.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert fetched.topics[0].partitions[0].current_leader.leader_id == 2
        assert [each.node_id for each in fetched.node_endpoints] == [2]

    simulate(body)


def test_takeover_continues_at_the_last_offset_and_overwrites_no_segment():
    """N-02 of the checklist."""

    async def body(cluster):
        second = await cluster.broker(2)
        segments = {}

        async def work_and_die(first):
            await first.topic("orders", 1)
            await until(lambda: leaders(first) == [1] and is_served(first, 1))
            for number in range(50):
                await write(first, 0, b"%d" % number)
                if number == 20:
                    await first.roll("orders")
            async for chunk in cluster.stores.objects.list(f"{CONFIG.s3.namespace}/orders/"):
                for item in chunk:
                    segments[item.key] = bytes(await cluster.stores.objects.get(item.key))

        # The broker that takes over has led another partition before.
        await second.topic("other", 1)
        await until(lambda: is_served(second, 1, "other"))
        await cluster.dying_broker(1, work_and_die)
        await until(lambda: is_served(second, 1))
        assert await write(second, 0, b"50") == 50
        await second.roll("orders")
        assert len(segments) == 2
        for key, data in segments.items():
            assert bytes(await cluster.stores.objects.get(key)) == data

    simulate(body)


def test_fetch_from_a_non_owner_never_returns_offset_out_of_range():
    """N-04 of the checklist."""

    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        mine = leaders(first).index(1)
        for number in range(5):
            await write(first, mine, b"%d" % number)
        for offset in (0, 4, 5, 99):
            desired = TopicToFetch(
                topic_id=first.services.topic_store.get("orders").id,
                partitions=[PartitionToFetch(index=mine, offset=offset, max_bytes=1000)],
            )
            fetched = await second.ask(FETCH, FetchRequest(max_wait_ms=0, topics=[desired]))
            code = fetched.topics[0].partitions[0].error_code
            assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    simulate(body)


def test_wal_of_a_dead_broker_is_deleted_once_its_records_are_in_segments():
    async def body(cluster):
        second = await cluster.broker(2)

        async def work_and_die(first):
            await first.topic("orders", 2)
            await until(lambda: is_served(first, 1))
            await write(first, leaders(first).index(1), b"a")

        await cluster.dying_broker(1, work_and_die)
        await until(lambda: is_served(second, 2))
        for partition in (0, 1):
            await second.services.storage.roll_scheduler.roll(
                second.services.storage.logs.get("orders", partition), RollReason.EXPLICIT
            )
        await asyncio.sleep(120)
        prefix = f"{CONFIG.s3.namespace}/_wal/1/"
        left = [item.key async for chunk in cluster.stores.objects.list(prefix) for item in chunk]
        assert len(left) <= 2, "only the fence and the object before it remain"

    simulate(body)
