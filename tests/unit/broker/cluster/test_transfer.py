"""Transfers whose commit fails, and transfers while the object store is slow."""

import asyncio

import pytest

from doubles.faulty_object_store import Fault, Rule
from kafscale.broker.cluster.transfer import OwnershipTransfer
from kafscale.errors import NotOwnerError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment
from kafscale.metadata.schema.model import SHARDS_TOPIC
from kafscale.metadata.store.base import Put
from kafscale.records import iterate, split
from unit.broker.cluster.test_node import is_served, leaders, simulate, until, write
from unit.broker.cluster.unreachable_store import UnreachableStore
from unit.broker.in_memory_broker import Stores, running_broker

LATE_SECONDS = 5
TRANSFER_SECONDS_MAX = 1.5
"""How long producers may be refused: the pause, and the time until the new owner serves."""


class LateStore(UnreachableStore):
    """A metadata store that fails a commit of an assignment, and applies it later, or at once.

    Or it applies the commit, and responds later.
    """

    def __init__(self, store):
        super().__init__(store)
        self.delays = []
        """Of the next commits that change an assignment."""
        self.response_delays = []
        """Of the responses to the next such commits, after `delays`."""
        self.failures_to_load = 0

    async def commit(self, compares, operations):
        self._check()
        is_assignment = any(
            isinstance(each, Put) and each.key.startswith(keys.ASSIGNMENTS) for each in operations
        )
        if self.delays and is_assignment:
            delay = self.delays.pop(0)
            if delay:
                late = asyncio.sleep(delay, (compares, operations))
                asyncio.create_task(self._apply(late))  # noqa: RUF006 - the loop ends soon.
            else:
                await self._store.commit(compares, operations)
            raise StoreUnavailableError("no response")
        done = await self._store.commit(compares, operations)
        if self.response_delays and is_assignment:
            await asyncio.sleep(self.response_delays.pop(0))
        return done

    async def range(self, prefix):
        self._check()
        if prefix == keys.CONSUMERS and self.failures_to_load:
            self.failures_to_load -= 1
            raise StoreUnavailableError("no response")
        return await self._store.range(prefix)

    async def _apply(self, late):
        await self._store.commit(*await late)


async def start_brokers(cluster, stack):
    brokers = []
    for node_id in (1, 2):
        stores = Stores()
        stores.objects = cluster.stores.objects
        stores.metadata = LateStore(cluster.stores.metadata)
        brokers.append(await stack.enter_async_context(running_broker(stores, node_id=node_id)))
    first, second = brokers
    await first.topic("orders", 2)
    await until(lambda: is_served(first, 1) and is_served(second, 1))
    await until(lambda: all(len(each.services.shards.served) == 25 for each in brokers))
    return first, second, leaders(first).index(1)


def simulate_transfer(body):
    """Run `body` with two brokers, and the number of the partition that the first one owns."""

    async def with_brokers(cluster):
        await body(*await start_brokers(cluster, cluster._stack))

    simulate(with_brokers)


def owner_of(brokers, partition):
    return next(
        (each for each in brokers if each.services.storage.logs.get("orders", partition)), None
    )


async def values(broker, partition):
    storage = broker.services.storage
    log = storage.logs.get("orders", partition)
    found, _ = await storage.reader.read(log, log.start_offset, 1 << 30, first=True)
    return [record.value for batch in split(b"".join(found)) for record in iterate(batch)]


@pytest.mark.parametrize("failures", [1, 3])
def test_transfer_that_failed_is_not_applied_later(failures):
    """The owner has accepted records meanwhile: with a late transfer they would be lost."""

    async def body(first, second, mine):
        await write(first, mine, b"before")
        # The commits that settle it fail, too.
        first.stores.metadata.delays = [LATE_SECONDS] * failures
        first.node.ownership.start_transfer(("orders", mine), 2)
        await until(lambda: not first.stores.metadata.delays)
        acknowledged = [b"before"]
        for number in range(100):
            value = b"%d" % number
            owner = owner_of((first, second), mine)
            try:
                await write(owner, mine, value)
                acknowledged.append(value)
            except (NotOwnerError, AttributeError):
                pass
            await asyncio.sleep(0.1)
        assert len(acknowledged) > 50
        await until(lambda: owner_of((first, second), mine) is not None)
        assert await values(owner_of((first, second), mine), mine) == acknowledged

    simulate_transfer(body)


def test_transfer_that_was_applied_without_a_response_ends_the_ownership():
    async def body(first, second, mine):
        await write(first, mine, b"before")
        first.stores.metadata.delays = [0]
        drained, _ = await first.node.drainer.drain([("orders", mine)], 10)
        assert drained == [("orders", mine)]
        await until(lambda: first.services.cluster.leader("orders", mine)[1] >= 1)
        await until(lambda: owner_of((first, second), mine) is not None)
        assert await values(owner_of((first, second), mine), mine) == [b"before"]

    simulate_transfer(body)


def test_late_response_to_a_transfer_does_not_close_the_partition_that_is_back():
    """Its new term has records that are in no segment: opened again, it would not have them."""

    async def body(first, _second, mine):
        await write(first, mine, b"before")
        # The controller has it moved back at once.
        topics = first.services.topic_store
        await topics.request_replicas("orders", topics.topics["orders"].id, {mine: (1,)})
        first.stores.metadata.response_delays = [LATE_SECONDS]
        first.node.ownership.start_transfer(("orders", mine), 2)
        await until(lambda: first.services.cluster.leader("orders", mine) == (1, 2))
        await until(lambda: is_current(first, mine))
        log = first.services.storage.logs.get("orders", mine)
        await write(first, mine, b"after")
        await asyncio.sleep(2 * LATE_SECONDS)
        assert first.services.storage.logs.get("orders", mine) is log
        assert await values(first, mine) == [b"before", b"after"]

    simulate_transfer(body)


def is_current(broker, partition):
    """Whether a broker serves the newest term of a partition."""
    log = broker.services.storage.logs.get("orders", partition)
    newest = broker.services.cluster.assignments("orders")[partition].leader_epoch
    return log is not None and log.leader_epoch == newest


def test_shard_transfer_that_failed_is_not_applied_later():
    async def body(first, second, _mine):
        shard = min(first.services.shards.served)
        first.stores.metadata.delays = [LATE_SECONDS]
        first.stores.metadata.failures_to_load = 3
        first.node.ownership.start_transfer((SHARDS_TOPIC, shard), 2)
        await until(lambda: not first.stores.metadata.delays)
        await until(lambda: shard in first.services.shards.served)
        await asyncio.sleep(LATE_SECONDS + 1)
        assert shard in first.services.shards.served
        assert shard not in second.services.shards.served

    simulate_transfer(body)


def test_assignment_of_a_transfer_has_the_end_of_the_log():
    async def body(first, _second, mine):
        await write(first, mine, b"a", b"b")
        await first.node.drainer.drain([("orders", mine)], 10)
        entry = await first.stores.metadata.get(keys.assignment("orders", mine))
        assert decode_assignment(entry).end_offset == 2

    simulate_transfer(body)


def test_finished_transfers_are_forgotten():
    async def body(first, _second, mine):
        transfers: OwnershipTransfer = first.node.ownership._transfers
        for shard in sorted(first.services.shards.served):
            first.node.ownership.start_transfer((SHARDS_TOPIC, shard), 2)
        await first.node.drainer.drain([("orders", mine)], 10)
        await asyncio.sleep(1)
        first.node.ownership.start_transfer((SHARDS_TOPIC, min(first.services.shards.served)), 2)
        await asyncio.sleep(1)
        assert len(transfers._transferred) <= 1

    simulate_transfer(body)


# --- producers during a transfer ------------------------------------------------------------------


async def longest_refusal(brokers, partition, seconds):
    """Append all the time; return the longest time without success."""
    loop = asyncio.get_running_loop()
    end, last, longest = loop.time() + seconds, loop.time(), 0.0
    while loop.time() < end:
        try:
            owner = owner_of(brokers, partition)
            if owner is not None:
                await write(owner, partition, b"x")
                longest, last = max(longest, loop.time() - last), loop.time()
        except NotOwnerError:
            pass
        await asyncio.sleep(0.02)
    return max(longest, loop.time() - last)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(fault=Fault.SLOW, operations=frozenset({"put"}), keys="*/orders/*", seconds=(8, 8)),
        Rule(fault=Fault.DENIED, operations=frozenset({"put"}), keys="*/orders/*.kfs"),
    ],
    ids=["slow", "denied"],
)
def test_producers_do_not_wait_for_segments(rule):
    async def body(first, second, mine):
        await write(first, mine, b"x")
        first.stores.objects.rules.append(rule)
        moving = asyncio.create_task(first.node.drainer.drain([("orders", mine)], 60))
        assert await longest_refusal((first, second), mine, 60) < TRANSFER_SECONDS_MAX
        first.stores.objects.rules.remove(rule)
        await moving
        await first.node.drainer.drain([("orders", mine)], 30)
        await until(lambda: first.services.cluster.leader("orders", mine)[1] >= 1)

    simulate_transfer(body)


def test_transfer_during_steady_appends_refuses_them_for_a_moment():
    async def body(first, second, mine):
        rule = Rule(
            fault=Fault.SLOW, operations=frozenset({"put"}), keys="*/orders/*", seconds=(0.1, 0.1)
        )
        first.stores.objects.rules.append(rule)
        appending = asyncio.create_task(longest_refusal((first, second), mine, 10))
        await asyncio.sleep(1)
        drained, _ = await first.node.drainer.drain([("orders", mine)], 10)
        assert drained
        assert await appending < TRANSFER_SECONDS_MAX

    simulate_transfer(body)
