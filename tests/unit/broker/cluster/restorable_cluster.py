"""A cluster whose metadata can be restored from a backup while its bucket is kept.

Brokers are killed without notice, and only the stores survive. The cluster records what was
acknowledged, by topic, partition and offset, and the numbers that clients have seen and that may
only grow.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import NamedTuple

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.errors import ObjectNotFoundError
from kafscale.metadata.cluster.restore_marker import REVISION_BUMP, mark_restored
from kafscale.metadata.store.base import Entry
from kafscale.metadata.store.in_process import COMMITS_MAX, History
from kafscale.records import iterate, split
from kafscale.storage import topic_catalog
from kafscale.storage.bucket import read_wal_ranges
from kafscale.storage.formats import object_keys
from kafscale.storage.segments.segment_writer import RollReason
from unit.broker.cluster.unreachable_store import UnreachableStore
from unit.broker.in_memory_broker import CONFIG, InMemoryBroker, Stores, running_broker
from unit.storage.engines import values_batch

LEASE_MS = CONFIG.broker.lease_ttl_ms


class Backup(NamedTuple):
    """The content of a metadata store at a revision."""

    entries: dict[str, Entry]
    revision: int


class BackedUpStore(MemoryStore):
    """A metadata store that can be backed up, and restored as another one."""

    def backup(self) -> Backup:
        return Backup(dict(self._entries), self._history.revision)

    @classmethod
    def restored(cls, backup: Backup, leap: int) -> "BackedUpStore":
        """Like etcd: with all leases, whose TTL starts again."""
        store = cls(virtual_time.clock_ms)
        store._entries = dict(backup.entries)
        store._keys = sorted(backup.entries)
        store._history = History(backup.revision + leap, COMMITS_MAX)
        leases = {entry.lease for entry in backup.entries.values() if entry.lease}
        for lease in sorted(leases):
            store._leases._last = lease - 1
            assert store._leases.grant(LEASE_MS) == lease
        return store


class RestorableCluster:
    """Brokers, the stores that they share, and what was acknowledged to clients."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.metadata = BackedUpStore(virtual_time.clock_ms)
        self.brokers: dict[int, InMemoryBroker] = {}
        self.acked: dict[tuple[str, int], dict[int, bytes]] = {}
        """Values by offset, by topic partition."""
        self.leader_epochs: dict[tuple[str, int], int] = {}
        self.producer_ids: set[int] = set()
        self._deaths: dict[int, asyncio.Event] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._written = 0
        self.late_s: dict[int, dict[str, float]] = {}
        """Delays of watch events in seconds, by broker and prefix."""

    async def start(self, *broker_ids: int) -> None:
        """Start brokers concurrently; they serve when this returns."""
        await asyncio.gather(*(self._start(broker_id) for broker_id in broker_ids))

    def begin(self, broker_id: int) -> "asyncio.Task[None]":
        """Start a broker that may be killed before it serves."""
        return asyncio.create_task(self._start(broker_id))

    async def kill(self, *broker_ids: int) -> None:
        """Kill brokers without notice; all, if none is named."""
        for broker_id in broker_ids or tuple(self._tasks):
            self.brokers.pop(broker_id, None)
            task = self._tasks.pop(broker_id)
            self._deaths.pop(broker_id).set()
            task.cancel()
            await asyncio.wait([task])

    async def restore(self, backup: Backup, *, leap: bool) -> None:
        """Replace the metadata by a backup; no broker is running."""
        assert not self._tasks
        self.metadata = BackedUpStore.restored(backup, REVISION_BUMP if leap else 0)
        if not leap:
            now_ms = virtual_time.clock_ms()
            await mark_restored(
                self.metadata, snapshot="a.db", taken_at_ms=now_ms, restored_at_ms=now_ms
            )

    async def _start(self, broker_id: int) -> None:
        serves: asyncio.Future[InMemoryBroker] = asyncio.get_running_loop().create_future()
        death = self._deaths[broker_id] = asyncio.Event()

        async def live() -> None:
            stores = Stores()
            stores.objects = self.stores.objects
            stores.metadata = UnreachableStore(self.metadata)
            stores.metadata.late_s = self.late_s.get(broker_id, {})
            async with AsyncExitStack() as stack:
                served = await stack.enter_async_context(running_broker(stores, node_id=broker_id))
                serves.set_result(served)
                await death.wait()

        task = self._tasks[broker_id] = asyncio.create_task(live())
        await asyncio.wait([task, serves], return_when=asyncio.FIRST_COMPLETED)
        if serves.done():
            self.brokers[broker_id] = serves.result()

    # --- clients --------------------------------------------------------------------------------

    @property
    def any_broker(self) -> InMemoryBroker:
        return next(iter(self.brokers.values()))

    async def topic(self, name: str, partitions: int, **configs: str) -> None:
        await self.any_broker.topic(name, partitions, **configs)
        self.acked |= {(name, number): {} for number in range(partitions)}

    async def grow(self, name: str, partitions: int) -> None:
        await self.any_broker.services.topics.grow(name, partitions)
        for number in range(partitions):
            self.acked.setdefault((name, number), {})

    async def delete(self, name: str) -> None:
        await self.any_broker.services.topic_store.delete(name)
        self.acked = {
            topic_partition: held
            for topic_partition, held in self.acked.items()
            if topic_partition[0] != name
        }
        self.leader_epochs = {
            topic_partition: epoch
            for topic_partition, epoch in self.leader_epochs.items()
            if topic_partition[0] != name
        }

    async def owner(self, topic: str, partition: int) -> InMemoryBroker:
        async with asyncio.timeout(120):
            while True:
                for broker in self.brokers.values():
                    value = broker.services.storage.logs.get(topic, partition)
                    if value is not None and value.wal is not None:
                        return broker
                await asyncio.sleep(0.05)

    async def write(self, topic: str, partition: int, count: int = 1) -> None:
        """Write records and wait until they are acknowledged."""
        for _ in range(count):
            broker = await self.owner(topic, partition)
            log = broker.services.storage.logs.get(topic, partition)
            value = b"%d" % self._written
            self._written += 1
            appended = log.append(values_batch([value]), virtual_time.clock_ms())
            await appended.durable
            held = self.acked[topic, partition]
            assert appended.base_offset not in held, "an offset is assigned once"
            held[appended.base_offset] = value
            self._see(topic, partition, log.leader_epoch)

    async def roll(self, topic: str, partition: int) -> None:
        broker = await self.owner(topic, partition)
        log = broker.services.storage.logs.get(topic, partition)
        await broker.services.storage.roll_scheduler.roll(log, RollReason.EXPLICIT)

    async def trim(self, topic: str, partition: int) -> None:
        """Trim the WAL of everything that is in segments; `other` is written to for that."""
        broker = await self.owner(topic, partition)
        await self.write("other", 0)
        await broker.services.storage.trim()
        left = {
            held.topic
            async for chunk in self.stores.objects.list(object_keys.wal_root(CONFIG.s3.namespace))
            for ranges in (await read_wal_ranges(self.stores.objects, chunk)).values()
            for held in ranges
        }
        assert topic not in left

    async def delete_records(self, topic: str, partition: int, offset: int) -> None:
        broker = await self.owner(topic, partition)
        log = broker.services.storage.logs.get(topic, partition)
        await broker.services.storage.retention.delete_records(log, offset)
        held = self.acked[topic, partition]
        self.acked[topic, partition] = {at: held[at] for at in held if at >= offset}

    async def allocate_producer_ids(self) -> None:
        for broker in self.brokers.values():
            taken = await broker.services.producer_ids.next()
            assert taken not in self.producer_ids
            self.producer_ids.add(taken)

    def _see(self, topic: str, partition: int, leader_epoch: int) -> None:
        assert leader_epoch >= self.leader_epochs.get((topic, partition), 0)
        self.leader_epochs[topic, partition] = leader_epoch

    async def wait_until_published(self) -> None:
        """Wait until the bucket's catalog has all topics."""
        key = object_keys.catalog_key(CONFIG.s3.namespace)
        while True:
            topics = self.any_broker.services.topic_store.topics.values()
            with suppress(ObjectNotFoundError):
                decoded = topic_catalog.decode(key, bytes(await self.stores.objects.get(key)))
                if {(each.topic_id, each.partition_count) for each in decoded.topics} == {
                    (topic.id.hex(), topic.partitions) for topic in topics
                }:
                    return
            await asyncio.sleep(0.1)

    def drop_empty_partitions(self) -> None:
        """Expect nothing of topics and partitions that were never written to."""
        topics = self.any_broker.services.topic_store.topics
        self.acked = {
            (name, number): held
            for (name, number), held in self.acked.items()
            if held or (name in topics and number < topics[name].partitions)
        }

    async def check(self) -> None:
        """Check that all acknowledged records can be read, and that writing continues."""
        topics = self.any_broker.services.topic_store.topics
        counts = {name: topic.partitions for name, topic in topics.items()}
        expected: dict[str, int] = {}
        for name, number in self.acked:
            expected[name] = max(expected.get(name, 0), number + 1)
        assert counts == expected, (counts, expected)
        for (topic, partition), held in self.acked.items():
            result = await self._read(topic, partition)
            assert {at: result.get(at) for at in held} == held, (topic, partition)
            await self.write(topic, partition)
        await self.allocate_producer_ids()

    async def _read(self, topic: str, partition: int) -> dict[int, bytes | None]:
        broker = await self.owner(topic, partition)
        log = broker.services.storage.logs.get(topic, partition)
        result: dict[int, bytes | None] = {}
        offset = log.start_offset
        while offset < log.high_watermark:
            slices, _ = await broker.services.storage.reader.read(log, offset, 1 << 20, first=True)
            for txn in split(b"".join(slices)):
                result |= {record.offset: record.value for record in iterate(txn)}
                offset = txn.next_offset
        return result
