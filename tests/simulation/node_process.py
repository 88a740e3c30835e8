"""A simulated broker process: a real `ClusterNode` and engine, with connections that fail.

It follows `broker.app` without the network: it starts its caches, joins the cluster and runs its
duties; it stops in order, or is killed, or is paused and continues. Requests to the stores are
executed outside the process, so that they take effect although it is paused or killed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from doubles.faulty_metadata_store import FaultyMetadataStore, MetadataFaults
from doubles.faulty_object_store import FaultyObjectStore
from doubles.processes import Processes
from doubles.virtual_time import clock_ms
from kafscale.broker.cluster.controller.controller import ControllerSettings
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.cluster.restore.restore import MetadataRestore
from kafscale.broker.cluster_identity import establish_cluster_id
from kafscale.broker.coordinators import Coordinators
from kafscale.broker.topic_catalog_publisher import TopicCatalogPublisher
from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.errors import KafscaleError, NotOwnerError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Committed, Compare, Operation, Put
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from kafscale.records.checksum import Buffer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.layers.leased import LeasedObjectStore
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.recovery.bucket_scan import BucketScanner
from kafscale.storage.topic_catalog import CatalogWriter
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams
from simulation.model import NAMESPACE
from simulation.node_peers import NodePeers

if TYPE_CHECKING:
    from simulation.node_cluster import NodeCluster

CONFIG = Config(s3=S3(use_memory=True, namespace=NAMESPACE))
CLUSTER_ID = "simulated-cluster"
METRICS = Metrics()
"""Shared by all runs: building them takes longer than some runs."""
NO_WAIT = MetadataFaults(timeout=(0.0, 0.0))
FLUSH_SECONDS = 20.0
DRAIN_SECONDS = 30.0
ROLL_SECONDS = 0.5

TRANSFERS_MAY_BE_LATE = True
"""Whether the commit of a transfer may fail and take effect after the owner serves again."""

STOPS_CLEANLY = True
"""Whether a broker that is fenced while it stops must stop without an exception."""

Result = TypeVar("Result")


class RemoteObjectStore:
    """Executes requests outside the process: they continue when it is paused or cancelled."""

    def __init__(self, inner: ObjectStore, processes: Processes) -> None:
        self.is_cut = False
        self._inner = inner
        self._processes = processes

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        copied = [bytes(part) for part in parts]
        await self._request(self._inner.put(key, copied, create=create))

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        copied = [bytes(part) for part in parts]
        await self._request(self._inner.replace(key, copied, etag))

    async def get(self, key: str) -> memoryview:
        return await self._request(self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._request(self._inner.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._request(self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._request(self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        pages = aiter(self._inner.list(prefix))

        async def advance() -> Sequence[ObjectInfo] | None:
            return await anext(pages, None)

        while page := await self._request(advance()):
            yield page

    async def delete(self, keys: Sequence[str]) -> None:
        await self._request(self._inner.delete([*keys]))

    async def close(self) -> None:
        self.is_cut = True

    async def _request(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        if self.is_cut:
            coroutine.close()
            raise StoreUnavailableError("the process was killed")
        request = asyncio.create_task(coroutine, context=self._processes.outside.copy())
        request.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({request})
        return request.result()


class NodeConnection(FaultyMetadataStore):
    """A connection whose commits that change assignments are late only if brokers expect that."""

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        may_be_late = TRANSFERS_MAY_BE_LATE or not any(
            isinstance(operation, Put) and operation.key.startswith(keys.ASSIGNMENTS)
            for operation in operations
        )
        return await self._request(
            lambda: self._inner.commit(compares, operations), changes=may_be_late
        )


class NodeProcess:
    """A broker process; a broker that is started again is another process of the same id."""

    def __init__(self, cluster: "NodeCluster", broker_id: int) -> None:
        self.id = broker_id
        self.skew_ms = 0
        """How far the wall clock of this process is ahead."""
        self.ended = asyncio.Event()
        self.has_rival = False
        """Whether another process of this id ran at the same time: one of them has to stop."""
        self.is_ready = False
        self.is_stopping = False
        self.process = cluster.processes.start(f"broker {broker_id}")
        self.metadata = NodeConnection(
            cluster.metadata,
            cluster.metadata_faults,
            random=cluster.random,
            context=cluster.processes.outside,
            sleep=cluster.late.sleep,
        )
        self.objects = FaultyObjectStore(
            cluster.objects, cluster.object_faults, random=cluster.random, sleep=cluster.late.sleep
        )
        self._cluster = cluster
        self._random = Random(cluster.random.getrandbits(32))
        self._remote = RemoteObjectStore(self.objects, cluster.processes)
        self._retrying = RetryingObjectStore(
            self._remote, attempts_max=CONFIG.s3.attempts_max, random=self._random
        )
        self.topic_store = TopicStore(self.metadata, namespace=NAMESPACE)
        self.cache = ClusterCache(self.metadata)
        self.registration = Registration(
            self.metadata,
            BrokerInfo(id=broker_id, epoch=0, host=f"broker-{broker_id}", port=9092),
            ttl_ms=CONFIG.broker.lease_ttl_ms,
            clock=self.clock,
            monotonic=clock_ms,
        )
        guards = OwnershipGuards(self.metadata)
        states = PartitionStateStore(self.metadata, self.topic_store, guards, clock=self.clock)
        self.engine = StorageEngine(
            self._retrying,
            NAMESPACE,
            broker_id,
            cluster.settings,
            save_state=states.save,
            clock=self.clock,
            random=self._random,
            is_lease_valid=self._is_lease_valid,
        )
        coordinators = Coordinators.build(
            CONFIG,
            self.metadata,
            topic_store=self.topic_store,
            cluster_cache=self.cache,
            registration=self.registration,
            logs=self.engine.logs,
            peers=NodePeers(cluster),
            metrics=METRICS,
            clock=self.clock,
            steady_clock=clock_ms,
            random=self._random,
        )
        self.shards = coordinators.shards
        self.groups = coordinators.groups
        self.transactions = coordinators.transactions
        self.node = self._node(guards, states)
        self.main = self.process.create_task(self._run())

    def __repr__(self) -> str:
        broker = self.registration.broker
        return f"<broker {self.id} epoch {broker.epoch if broker else None}>"

    def clock(self) -> int:
        return clock_ms() + self.skew_ms

    def _is_lease_valid(self) -> bool:
        return self.registration.lease_is_valid

    def serves(self, log: PartitionLog) -> bool:
        """Whether the handlers would accept requests for this log."""
        return not log.closed and self.registration.lease_is_valid

    def find(self, name: str, topic_id: bytes, partition: int) -> PartitionLog:
        """The log that the Produce handler would find."""
        logs = self.engine.logs
        log = logs.get(name, partition) if name else logs.find_by_id(topic_id, partition)
        if self.ended.is_set() or self.process.is_paused or not self.is_ready:
            raise NotOwnerError("the broker does not respond")
        if log is None or not self.serves(log):
            raise NotOwnerError("the broker does not own the partition")
        return log

    def call(self, request: Callable[[], Awaitable[Result]]) -> "asyncio.Task[Result]":
        """Execute a request of a client in this process."""

        async def execute() -> Result:
            return await request()

        return self.process.create_task(execute())

    # --- the life of the process ------------------------------------------------------------------

    async def _run(self) -> None:
        await self.topic_store.start()
        await self.cache.start()
        await self.groups.start()
        await establish_cluster_id(
            self.metadata, self._retrying, CONFIG, candidate=CLUSTER_ID, clock=self.clock
        )
        await self.node.join()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.node.run())
            group.create_task(self.engine.run())
            group.create_task(self.shards.writer.run())
            group.create_task(self.groups.run())
            group.create_task(self.transactions.coordinator.run())
            group.create_task(self._wait_until_ready())

    async def _wait_until_ready(self) -> None:
        await self.node.wait_until_ready(CONFIG.broker.startup_timeout_sec)
        self.is_ready = True

    async def stop(self) -> None:
        """Shut down in order, as after SIGTERM."""
        self.is_stopping = True
        try:
            await self.call(self._stop)
        except KafscaleError:
            if STOPS_CLEANLY:
                raise
        finally:
            await self.kill()

    async def _stop(self) -> None:
        if self.registration.broker is not None:
            await self.node.leave(DRAIN_SECONDS)
        with suppress(StoreUnavailableError):
            await self.shards.writer.finish(FLUSH_SECONDS)
        self.main.cancel()
        await asyncio.gather(self.main, return_exceptions=True)
        await self.engine.stop(flush_seconds=FLUSH_SECONDS, roll_seconds=ROLL_SECONDS)
        await self.node.close()

    async def kill(self) -> None:
        """End at once; requests under way may still take effect."""
        self.ended.set()
        self.metadata.change(NO_WAIT)
        self.metadata.cut()
        self._remote.is_cut = True
        await self.process.kill()
        # A broker that cannot read the metadata at its start exits; the cluster judges others.
        await asyncio.gather(self.main, return_exceptions=True)
        self.engine.close()

    # --- components -------------------------------------------------------------------------------

    def _node(self, guards: OwnershipGuards, states: PartitionStateStore) -> ClusterNode:
        streams = Streams(self._retrying, NAMESPACE, self.clock)
        leased = LeasedObjectStore(self._retrying, self._is_lease_valid)
        writer = CatalogWriter(leased, NAMESPACE, CLUSTER_ID)
        catalog = TopicCatalogPublisher(writer, self.topic_store)
        node = ClusterNode(
            self.metadata,
            topic_store=self.topic_store,
            cache=self.cache,
            guards=guards,
            partition_states=states,
            registration=self.registration,
            storage=self.engine,
            shards=self.shards,
            streams=streams,
            cleaner=DeadStreamCleaner(leased, NAMESPACE, self.clock),
            restorer=MetadataRestore(
                self.metadata,
                self.topic_store,
                streams,
                BucketScanner(self._retrying, NAMESPACE, streams),
                catalog,
                cluster_id=CLUSTER_ID,
                namespace=NAMESPACE,
                clock=self.clock,
                random=self._random,
            ),
            broker_id=self.id,
            cluster_id=CLUSTER_ID,
            defaults=TopicDefaults.from_config(CONFIG),
            settings=ControllerSettings(),
            clock=self.clock,
            random=self._random,
        )
        node.controller.on_elected(catalog.on_elected)
        node.controller.on_publish(catalog.publish)
        return node
