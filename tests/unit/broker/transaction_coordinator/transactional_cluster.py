"""Whole brokers in memory that share their stores, and producers that use transactions on them.

    def test_something():
        async def body(cluster):
            await cluster.start(1)
            await cluster.start(2)
            producer = TransactionalProducer(cluster, cluster.id_at(1))
            await producer.initialize()
            ...

        simulate(body)

Everything but the network is real. Each broker has its own connection to the metadata store, and
reaches the others by `Network`. `crash` ends a broker at once; the steps at which one can crash are
its commits of transactions and its calls of other brokers, before and after their effect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import count
from random import Random
from typing import Any, TypeVar

from doubles import virtual_time
from doubles.faulty_metadata_store import FaultyMetadataStore
from doubles.processes import Process, Processes
from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.transactions import Transaction
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest, TransactionMarker
from kafscale.errors import KafscaleError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, decode_broker
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.metadata.schema.transaction_codec import decode_transaction
from kafscale.metadata.store.base import Committed, Compare, Entry, Operation
from kafscale.records import BatchView, iterate, split
from kafscale.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from kafscale.records.control import ControlType, read_end_marker
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import TransactionRecord
from unit.broker.in_memory_broker import InMemoryBroker, Stores, running_broker

TOPIC = "orders"
CONFIG = Config(
    s3=S3(use_memory=True),
    transaction=Transaction(id_expiration_ms=300_000, id_expiration_interval_ms=10_000),
)
RESPONSE_SECONDS = 5
WAIT_SECONDS = 120
"""How long a cluster may take to settle: a lease, a transaction's timeout, and retries."""

Result = TypeVar("Result")


class Connection(FaultyMetadataStore):
    """One broker's connection to the metadata store."""

    def __init__(self, cluster: "TransactionCluster", broker_id: int) -> None:
        super().__init__(cluster.stores.metadata, random=Random(broker_id))
        self._cluster = cluster
        self._broker_id = broker_id
        self.transaction_commits = 0
        """How many commits had a transactional id, or offsets of a transaction."""
        self.reads: list[str] = []
        """The keys that were read one by one."""

    async def get(self, key: str) -> Entry | None:
        self.reads.append(key)
        return await super().get(key)

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        if not any(_is_transactional(each) for each in operations):
            return await super().commit(compares, operations)
        self.transaction_commits += 1
        await self._cluster.step(self._broker_id, "before a commit")
        committed = await super().commit(compares, operations)
        await self._cluster.step(self._broker_id, "after a commit")
        return committed


def _is_transactional(operation: Operation) -> bool:
    key = getattr(operation, "key", "")
    return key.startswith(keys.TRANSACTIONS) or "/transactions/" in key


class Network:
    """One broker's way to the others."""

    def __init__(self, cluster: "TransactionCluster", broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        messages = [marker.message for marker in markers]
        self._cluster.markers += [(broker_id, each) for each in messages]
        cluster = self._cluster
        cluster.marker_requests += 1
        cluster.marker_requests_most = max(cluster.marker_requests_most, cluster.marker_requests)
        try:
            return await self._call(
                broker_id, lambda broker: broker.services.transactions.write_markers(messages)
            )
        finally:
            cluster.marker_requests -= 1

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        return await self._call(
            broker_id, lambda broker: broker.services.transactions.verifier.answer(request)
        )

    async def close(self) -> None:
        pass

    async def _call(
        self, broker_id: int, request: Callable[[InMemoryBroker], Awaitable[Sequence[int]]]
    ) -> Sequence[int]:
        await self._cluster.step(self._broker_id, "before a call")
        await asyncio.sleep(self._cluster.call_seconds)
        if (error := self._cluster.failures.get(broker_id)) is not None:
            raise error
        codes = await self._cluster.call(broker_id, request)
        if codes is None:
            raise StoreUnavailableError(f"broker {broker_id} does not respond")
        await self._cluster.step(self._broker_id, "after a call")
        return codes


class TransactionCluster:
    """The brokers by id, and what they share."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.brokers: dict[int, InMemoryBroker] = {}
        self.connections: dict[int, Connection] = {}
        self.markers: list[tuple[int, TransactionMarker]] = []
        """All markers that were sent to other brokers."""
        self.marker_requests = 0
        """How many requests with markers are on their way to other brokers."""
        self.marker_requests_most = 0
        self.failures: dict[int, Exception] = {}
        """Calls of these brokers fail."""
        self.call_seconds = 0.001
        """How long a call takes to another broker."""
        self.crash_step: tuple[int, int] | None = None
        """A broker, and the number of its step at which it crashes."""
        self.crashed_at: str | None = None
        self._steps: dict[int, int] = {}
        self._processes = Processes()
        self._process_of: dict[int, Process] = {}
        self._crash: asyncio.Task[None] | None = None

    # --- brokers ----------------------------------------------------------------------------------

    async def start(self, broker_id: int) -> InMemoryBroker:
        connection = self.connections[broker_id] = Connection(self, broker_id)
        stores = Stores(connection)
        stores.objects = self.stores.objects
        started = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with running_broker(
                stores, CONFIG, broker_id, connect=lambda _cache: Network(self, broker_id)
            ) as broker:
                started.set_result(broker)
                await asyncio.Event().wait()

        process = self._process_of[broker_id] = self._processes.start(f"broker {broker_id}")
        process.create_task(run())
        broker = self.brokers[broker_id] = await started
        return broker

    async def crash(self, broker_id: int) -> None:
        """End a broker at once; what it has sent to the stores may still take effect."""
        self.connections[broker_id].cut()
        del self.brokers[broker_id]
        await self._process_of.pop(broker_id).kill()

    async def call(
        self, broker_id: int, request: Callable[[InMemoryBroker], Awaitable[Result]]
    ) -> Result | None:
        """Execute a request in the process of a broker; None if it does not respond."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return None

        async def execute() -> Result:
            return await request(broker)

        task = self._process_of[broker_id].create_task(execute())
        await asyncio.wait({task}, timeout=RESPONSE_SECONDS)
        return task.result() if task.done() and not task.cancelled() else None

    async def close(self) -> None:
        if self._crash is not None:
            await self._crash
        for broker_id in list(self.brokers):
            await self.crash(broker_id)

    async def step(self, broker_id: int, what: str) -> None:
        """Note that a broker does something; it may crash here, and does not continue then."""
        number = self._steps[broker_id] = self._steps.get(broker_id, 0) + 1
        if self.crash_step == (broker_id, number):
            self.crashed_at = what
            self.connections[broker_id].cut()
            self._crash = asyncio.create_task(
                self.crash(broker_id), context=self._processes.outside.copy()
            )
            await asyncio.Event().wait()

    # --- ownership --------------------------------------------------------------------------------

    async def owner(self, topic: str, partition: int) -> InMemoryBroker | None:
        """The running broker that owns a partition by the store; None while there is none."""
        metadata = self.stores.metadata
        entry = await metadata.get(keys.assignment(topic, partition))
        if entry is None:
            return None
        assignment = decode_assignment(entry)
        registered = await metadata.get(keys.broker(assignment.broker_id))
        if registered is None or not assignment.is_owned_by(decode_broker(registered)):
            return None
        return self.brokers.get(int(assignment.broker_id))

    async def coordinator(self, name: str) -> InMemoryBroker | None:
        """The coordinator of a group or a transactional id."""
        return await self.owner(SHARDS_TOPIC, shard_of(name))

    async def id_at(self, broker_id: int, prefix: str = "transfers") -> str:
        """A transactional id, or group, whose coordinator is this broker."""
        for number in count():
            name = f"{prefix}-{number}"
            owner = await self.coordinator(name)
            if owner is self.brokers[broker_id]:
                return name
        raise AssertionError

    async def partition_at(self, broker_id: int, topic: str = TOPIC) -> TopicPartition:
        """A partition that this broker owns."""
        for number in count():
            owner = await self.owner(topic, number)
            assert owner is not None, f"broker {broker_id} owns no partition of {topic}"
            if owner is self.brokers[broker_id]:
                return topic, number
        raise AssertionError

    async def wait_until_balanced(self) -> None:
        """Wait until no shard moves any more, since another broker has joined."""
        [cache] = [broker.services.cluster for broker in list(self.brokers.values())[:1]]
        await asyncio.sleep(1)
        await cache.wait_for(
            lambda: not any(each.reassigning_to is not None for each in cache.all_assignments())
        )

    async def log(self, topic: str, partition: int) -> PartitionLog | None:
        owner = await self.owner(topic, partition)
        return None if owner is None else owner.services.storage.logs.get(topic, partition)

    # --- what clients and administrators see ------------------------------------------------------

    async def record(self, transactional_id: str) -> TransactionRecord:
        """A transactional id as the store has it."""
        entry = await self.stores.metadata.get(keys.transactional_id(transactional_id))
        assert entry is not None
        return decode_transaction(entry)

    async def committed_values(self, topic: str, partition: int) -> list[bytes]:
        """What a reader of committed records gets of a partition that has no open transaction."""
        while True:
            owner = await self.owner(topic, partition)
            log = owner and owner.services.storage.logs.get(topic, partition)
            if log is not None and log.last_stable_offset == log.high_watermark:
                try:
                    return await _read_committed(owner, log)
                except KafscaleError:
                    pass  # It is being transferred.
            await asyncio.sleep(0.1)

    async def committed_offset(self, group: str) -> int | None:
        """The committed offset of a group for partition 0 of the topic."""
        owner = await self.coordinator(group)
        assert owner is not None
        fetched = owner.services.groups.fetch(group, None, -1)
        return fetched[TOPIC, 0].offset if fetched else None

    async def wait_until_ended(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until no partition, and no group, has an open transaction."""
        async with asyncio.timeout(WAIT_SECONDS):
            for topic, partition in partitions:
                while not await self._has_ended(topic, partition):  # noqa: ASYNC110 - virtual time.
                    await asyncio.sleep(0.1)

    async def _has_ended(self, topic: str, partition: int) -> bool:
        if topic != SHARDS_TOPIC:
            log = await self.log(topic, partition)
            return log is not None and log.last_stable_offset == log.high_watermark
        owner = await self.owner(topic, partition)
        try:
            return owner is not None and not owner.services.groups.open_transactions(partition)
        except KafscaleError:
            return False


async def _read_committed(owner: InMemoryBroker, log: PartitionLog) -> list[bytes]:
    """Read and filter as a client does."""
    reader = owner.services.storage.reader
    end = log.last_stable_offset
    aborted = sorted(
        await reader.aborted_transactions(log, log.start_offset, end),
        key=lambda each: each.first_offset,
    )
    values: list[bytes] = []
    aborting: set[int] = set()
    offset = log.start_offset
    while offset < end:
        slices, offset = await reader.read(log, offset, 1 << 20, first=True)
        for batch in split(b"".join(slices)):
            while aborted and aborted[0].first_offset <= batch.last_offset:
                aborting.add(aborted.pop(0).producer_id)
            values += _values(batch, aborting)
    return values


def _values(batch: BatchView, aborting: set[int]) -> list[bytes]:
    header = batch.header()
    if header.attributes & CONTROL_BIT:
        marker = read_end_marker(batch)
        if marker is not None and marker.control_type is ControlType.ABORT:
            aborting.discard(header.producer_id)
        return []
    if header.attributes & TRANSACTIONAL_BIT and header.producer_id in aborting:
        return []
    return [record.value for record in iterate(batch) if record.value is not None]


def simulate(body: Callable[[TransactionCluster], Awaitable[Any]]) -> None:
    """Run the body of a test in virtual time."""

    async def scenario(_random: Random) -> None:
        cluster = TransactionCluster()
        try:
            await body(cluster)
        finally:
            await cluster.close()

    virtual_time.run(scenario, seed=0)
