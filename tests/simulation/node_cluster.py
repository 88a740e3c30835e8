"""The environment of simulated brokers: stores that outlive them, their processes, and the topics.

Every attempt to create a topic has a new id and a model of its own, because a failed attempt may
take effect later. The metadata store itself, read without faults, is the truth about which topics
exist and which process owns a partition.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

from doubles.faulty_metadata_store import NO_METADATA_FAULTS, MetadataFault, MetadataFaults
from doubles.faulty_object_store import Rule
from doubles.memory_store import MemoryStore
from doubles.processes import Processes
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster.replicas import preferred_owner
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, decode_broker
from kafscale.metadata.schema.model import NO_BROKER, Assignment, Topic
from kafscale.metadata.schema.topic_codec import decode_topic, encode_topic
from kafscale.metadata.store.base import Entry, Put
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.memory import MemoryObjectStore
from simulation.cluster import NO_FAULTS, random_settings
from simulation.model import NAMESPACE, InvariantViolationError, PartitionModel, SimulatedTopic
from simulation.node_process import NodeProcess

SERVED_SECONDS_MAX = 180.0
"""How long it may take after the last fault until every partition is served again."""

DELETIONS_COMPLETE = True
"""Whether every deletion must complete, although a broker joins while it is under way."""


class LateRequests:
    """The waits of requests that take effect late; they can be ended at once."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        released = self._released
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await released.wait()

    def release(self) -> None:
        """Let all late requests take effect now."""
        self._released.set()
        self._released = asyncio.Event()


class PeekableStore(MemoryStore):
    """A store whose entries a check can see without a wait."""

    def peek(self, key: str) -> Entry | None:
        return self._entries.get(key)


class NodeCluster:
    """Everything that outlives a process."""

    def __init__(self, random: Random, objects: MemoryObjectStore | None = None) -> None:
        self.random = random
        self.objects = objects or MemoryObjectStore(clock_ms, yields=True)
        self.metadata = PeekableStore(clock_ms, commits_max=random.choice((20, 1000)))
        self.object_faults: tuple[Rule, ...] = NO_FAULTS
        self.metadata_faults: MetadataFaults = NO_METADATA_FAULTS
        self.settings = random_settings(random)
        self.processes = Processes()
        self.late = LateRequests()
        self.late_calls: set[asyncio.Task[None]] = set()
        """Calls between brokers that arrive once more."""
        self.nodes: dict[int, NodeProcess] = {}
        """The newest process of each id."""
        self.zombies: list[NodeProcess] = []
        """Processes that were replaced while they were paused."""
        self.attempts: dict[bytes, SimulatedTopic] = {}
        """All topics that were ever requested, by id."""
        self._ended: list[NodeProcess] = []

    # --- processes --------------------------------------------------------------------------------

    def start(self, broker_id: int) -> NodeProcess:
        node = self.nodes[broker_id] = NodeProcess(self, broker_id)
        rivals = [zombie for zombie in self.zombies if zombie.id == broker_id]
        for each in [*rivals, node]:
            each.has_rival |= bool(rivals)
        return node

    def all_nodes(self) -> list[NodeProcess]:
        return [*self.nodes.values(), *self.zombies]

    def live_nodes(self) -> list[NodeProcess]:
        return [node for node in self.all_nodes() if not node.ended.is_set()]

    async def kill(self, node: NodeProcess) -> None:
        await node.kill()
        self._forget(node)

    async def stop(self, node: NodeProcess) -> None:
        await node.stop()
        self._forget(node)

    def supersede(self, node: NodeProcess) -> NodeProcess:
        """Start another process of the same id, although this one still runs."""
        self.zombies.append(node)
        return self.start(node.id)

    def _forget(self, node: NodeProcess) -> None:
        self._ended.append(node)
        if self.nodes.get(node.id) is node:
            del self.nodes[node.id]
        if node in self.zombies:
            self.zombies.remove(node)

    async def check_processes(self) -> None:
        """Start processes again that could not start; any other that has ended is a violation."""
        for node in self.live_nodes():
            if not node.main.done() or node.is_stopping:
                continue
            error = _cause(node.main.exception())
            # Two processes of the same id may fence each other while they start.
            is_starting = not node.is_ready and isinstance(error, OperatingError | FencedError)
            is_replaced = node.has_rival and isinstance(error, FencedError)
            if not is_starting and not is_replaced:
                raise InvariantViolationError(f"{node} has ended: {error!r}") from error
            is_newest = self.nodes.get(node.id) is node
            await self.kill(node)
            if is_newest and node.id not in self.nodes:  # An event may have started it meanwhile.
                self.start(node.id)

    async def close(self) -> None:
        for node in self.all_nodes():
            await node.kill()

    # --- faults -----------------------------------------------------------------------------------

    def change_faults(self, object_faults: tuple[Rule, ...], metadata: MetadataFaults) -> None:
        self.object_faults, self.metadata_faults = object_faults, metadata
        for node in self.live_nodes():
            node.objects.rules = [*object_faults]
            node.metadata.change(metadata)

    async def land_late_requests(self) -> None:
        """Let every late request take effect, also those of processes that have ended."""
        self.late.release()
        if self.late_calls:
            await asyncio.wait(set(self.late_calls))
        for node in [*self._ended, *self.all_nodes()]:
            await node.metadata.wait_for_late_requests()
            await node.objects.wait_for_late_writes()

    def injected_metadata_faults(self) -> Counter[MetadataFault]:
        faults: Counter[MetadataFault] = Counter()
        for node in [*self._ended, *self.all_nodes()]:
            faults.update(node.metadata.injected)
        return faults

    # --- topics -----------------------------------------------------------------------------------

    def new_attempt(self, name: str, partition_count: int) -> SimulatedTopic:
        topic = SimulatedTopic(name, len(self.attempts) + 1, partition_count, is_reused=False)
        self.attempts[topic.id] = topic
        return topic

    async def add_topic(self, name: str, partition_count: int) -> None:
        """Put a topic into the store that nothing deletes."""
        record = Topic(
            name=name,
            id=self.new_attempt(name, partition_count).id,
            partitions=partition_count,
            configs={},
            created_ms=clock_ms(),
            namespace=NAMESPACE,
        )
        await self.metadata.commit([], [Put(keys.topic_config(name), encode_topic(record))])

    def model(self, topic_id: bytes, partition: int) -> PartitionModel:
        topic = self.attempts[topic_id]
        while len(topic.partitions) <= partition:
            topic.partitions.append(PartitionModel(f"{topic.name}/{len(topic.partitions)}"))
        return topic.partitions[partition]

    def known_topic(self, log: PartitionLog) -> SimulatedTopic:
        """The topic of a log, with a model of its partition."""
        self.model(log.topic_id, log.partition)
        return self.attempts[log.topic_id]

    async def topics(self) -> dict[str, Topic]:
        """The topics that exist, as the store has them."""
        snapshot = await self.metadata.range(keys.TOPICS)
        return {
            topic.name: topic
            for entry in snapshot.entries
            if entry.key.endswith("/config")
            for topic in [decode_topic(entry)]
        }

    async def deletions(self) -> list[Topic]:
        """The deleted topics whose objects are not deleted yet."""
        entries = (await self.metadata.range(keys.DELETIONS)).entries
        return [topic for entry in entries if not (topic := decode_topic(entry)).emptied_ms]

    # --- ownership --------------------------------------------------------------------------------

    async def assignment(self, name: str, partition: int) -> Assignment | None:
        entry = await self.metadata.get(keys.assignment(name, partition))
        return decode_assignment(entry) if entry else None

    async def owner_log(
        self, topic: Topic, partition: int
    ) -> tuple[NodeProcess, PartitionLog] | None:
        """The log of a partition as the current owner serves it; None while none does."""
        assignment = await self.assignment(topic.name, partition)
        if assignment is None or assignment.topic_id != topic.id:
            return None
        registered = await self.metadata.get(keys.broker(assignment.broker_id))
        if registered is None or not assignment.is_owned_by(decode_broker(registered)):
            return None
        for node in self.live_nodes():
            broker = node.registration.broker
            if not assignment.is_owned_by(broker) or node.process.is_paused:
                continue
            log = node.engine.logs.find_by_id(topic.id, partition)
            if log is not None and node.serves(log) and log.leader_epoch == assignment.leader_epoch:
                return node, log
        return None

    def is_owner(self, node: NodeProcess, topic: SimulatedTopic, partition: int) -> bool:
        """Whether a process owns a partition by the store, and serves it in this term."""
        log = node.engine.logs.find_by_id(topic.id, partition)
        entry = self.metadata.peek(keys.assignment(topic.name, partition))
        if log is None or entry is None:
            return False
        assignment = decode_assignment(entry)
        return (
            assignment.is_owned_by(node.registration.broker)
            and assignment.topic_id == topic.id
            and assignment.leader_epoch == log.leader_epoch
        )

    async def served(self) -> "list[tuple[Topic, int, NodeProcess, PartitionLog]] | None":
        """All partitions with their owners, if all are served."""
        found = []
        for topic in (await self.topics()).values():
            for number in range(topic.partitions):
                owned = await self.owner_log(topic, number)
                if owned is None:
                    return None
                found.append((topic, number, *owned))
        return found

    async def check_owners(self) -> None:
        """Each owner has everything that was acknowledged."""
        for topic in (await self.topics()).values():
            for number in range(topic.partitions):
                owned = await self.owner_log(topic, number)
                model = self.model(topic.id, number)
                if owned is not None and owned[1].high_watermark < model.known_end:
                    raise InvariantViolationError(
                        f"{topic.name}/{number} at {owned[0]} ends at {owned[1].high_watermark},"
                        f" not {model.known_end}"
                    )

    async def wait_until_served(self, seconds: float = SERVED_SECONDS_MAX) -> None:
        """Wait until partitions are served, by requested brokers, and deletions are complete."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (
            await self.served() is None
            or (DELETIONS_COMPLETE and await self.deletions())
            or await self._misplaced()
        ):
            await self.check_processes()
            if loop.time() > until:
                raise InvariantViolationError(
                    f"not served after {seconds} s: {[text async for text in self._unserved()]}"
                )
            await asyncio.sleep(0.5)

    async def _misplaced(self) -> list[str]:
        """Partitions that are not owned by the broker that was requested and can own them."""
        registered = await self.metadata.range(keys.BROKERS)
        brokers = {broker.id: broker for broker in map(decode_broker, registered.entries)}
        misplaced = []
        for topic in (await self.topics()).values():
            for number, replicas in topic.replicas.items():
                preferred = preferred_owner(replicas, brokers)
                assignment = await self.assignment(topic.name, number)
                if preferred != NO_BROKER and (
                    assignment is None or assignment.broker_id != preferred
                ):
                    misplaced.append(f"{topic.name}/{number}: {replicas}, but {assignment}")
        return misplaced

    async def _unserved(self):
        for topic in (await self.topics()).values():
            for number in range(topic.partitions):
                if await self.owner_log(topic, number) is None:
                    yield f"{topic.name}/{number}: {await self.assignment(topic.name, number)}"
        for text in await self._misplaced():
            yield text
        for topic in await self.deletions():
            yield f"deletion of {topic.name} with id {topic.id.hex()}"


def _cause(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
