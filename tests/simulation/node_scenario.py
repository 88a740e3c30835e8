"""One run of the simulation of whole brokers: random events, in an order that a seed decides.

Clients produce and read in the background while topics are created, deleted and extended, and
brokers are killed, paused, cut off from a store, drained and started again. At the end the faults
stop: then everything must be served within bounded time, deletions complete, and all acknowledged
records be there, also after every late request has taken effect and another broker has taken over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from doubles.faulty_metadata_store import NO_METADATA_FAULTS, MetadataFaults
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster import id_allocator
from simulation.clients import Reader
from simulation.cluster import MANY_FAULTS, NO_FAULTS, SOME_FAULTS
from simulation.model import InvariantViolationError, SimulatedTopic
from simulation.node_clients import IdProducer, NameProducer
from simulation.node_cluster import NodeCluster
from simulation.node_process import NodeProcess
from simulation.node_transactional_producers import READ_TOPIC, TransactionalProducer
from simulation.node_transactions import NodeTransactions

NODES_MAX = 4
STEPS_MAX = 40
BATCHES_MAX = 40
PARTITIONS_MAX = 3
NAMES = ("orders", "payments")
TRANSACTIONAL_IDS_MAX = 3
PRODUCER_ID_MIN = 1_000_000
ENDED_SECONDS_MAX = 300
"""How long after the last fault a transaction may stay open."""
FINISH_SECONDS_MAX = 1800
LATER = ((0.1, 3.0), (0.1, 3.0), (1.0, 60.0), (60.0, 3 * 3600.0))

SLOW_WATCHES = MetadataFaults(watch_lag=(0.0, 8.0), watch_broken=0.05, compacted=0.2)
SOME_METADATA_FAULTS = MetadataFaults(
    delay=(0.001, 0.2),
    refused=0.03,
    response_lost=0.03,
    applied_later=0.03,
    later=LATER,
    watch_lag=(0.0, 2.0),
    watch_broken=0.02,
    compacted=0.1,
)
MANY_METADATA_FAULTS = MetadataFaults(
    delay=(0.001, 1.0),
    refused=0.1,
    response_lost=0.1,
    applied_later=0.15,
    later=LATER,
    watch_lag=(0.0, 10.0),
    watch_broken=0.1,
    compacted=0.3,
)
ERRORS_OF_DELETIONS = frozenset({"offsets missing", "released log has another end"})
"""What a broker logs if it opens a partition while the objects of its topic are deleted."""

OUTAGE_SECONDS = (1, 5, 12, 12, 40, 600)


Action = tuple[int, Callable[[], Awaitable[None] | None]]
"""An event of a run, with its weight."""


class NodeScenario:
    """The events of one run."""

    def __init__(self, cluster: NodeCluster, errors: list[dict[str, Any]]) -> None:
        """`errors` are those that brokers have logged; every one is a violation."""
        self._cluster = cluster
        self._errors = errors
        self._random = cluster.random
        self._reader = Reader(cluster.random)
        self._id_producers: list[IdProducer] = []
        self._name_producers: list[NameProducer] = []
        self._transactions = NodeTransactions(cluster)
        self._transactional_producers: list[TransactionalProducer] = []
        self._producing: dict[asyncio.Task[None], None] = {}
        self._others: dict[asyncio.Task[Any], None] = {}
        """Readers, and requests of administrators."""
        self._troubles: dict[asyncio.Task[None], None] = {}
        self._is_ending = asyncio.Event()
        self._number = 0
        self._skew_ms_max = 0
        self._actions = self._choose_actions()

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            await self._cluster.close()

    async def _run(self) -> None:
        await self._cluster.add_topic(READ_TOPIC, 2)
        # Other producers have no id of the cluster, but their numbers.
        await id_allocator.advance_to(
            self._cluster.metadata, id_allocator.PRODUCER_ID_COUNTER, PRODUCER_ID_MIN
        )
        for broker_id in range(self._random.randint(1, NODES_MAX)):
            self._cluster.start(broker_id)
        while not any(node.is_ready for node in self._cluster.live_nodes()):  # noqa: ASYNC110 - virtual time.
            await asyncio.sleep(0.1)
        for name in NAMES[: self._random.randint(1, len(NAMES))]:
            self._create_topic(name)
        for _ in range(self._random.choice((0, 1, 3))):
            self._transact()
        self._change_faults()
        for _ in range(self._random.randint(1, STEPS_MAX)):
            await self._step()
            await self._check()
        await self._check_at_end()

    # --- events -----------------------------------------------------------------------------------

    async def _step(self) -> None:
        weights, choices = zip(*self._actions, strict=True)
        (action,) = self._random.choices(choices, weights)
        result = action()
        if result is not None:
            await result

    def _choose_actions(self) -> list[Action]:
        """All actions; some runs have more transfers, or more deletions, and fewer other events."""
        clients: list[Action] = [
            (30, self._sleep),
            (15, self._read),
            (5, self._read_committed),
            (12, self._produce),
            (6, self._transact),
        ]
        faults: list[Action] = [(10, self._change_faults)]
        transfers: list[Action] = [(14, self._drain), (10, self._reassign), (3, self._rebalance)]
        topics: list[Action] = [
            (6, self._create_any_topic),
            (5, self._delete_topic),
            (3, self._grow_topic),
        ]
        brokers: list[Action] = [
            (5, self._pause),
            (2, self._supersede),
            (4, self._kill),
            (4, self._restart),
            (3, self._cut_metadata),
            (3, self._cut_objects),
            (2, self._stop_metadata),
            (2, self._stop_objects),
            (2, self._step_clock),
            (2, self._add_node),
        ]
        return [
            *clients,
            *faults,
            *self._random.choice(
                (
                    [*transfers, *topics, *brokers],
                    [*transfers, *topics, *brokers],
                    [*transfers, *brokers],
                    [*topics, *brokers],
                    transfers,
                    topics,
                )
            ),
        ]

    async def _sleep(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.01, 0.1, 0.5, 1, 3, 8, 15)))

    async def _read(self) -> None:
        node = self._any_process()
        served = [log for log in node.engine.logs if node.serves(log)]
        if served and not node.process.is_paused:
            log = self._random.choice(served)
            topic, number = self._cluster.known_topic(log), log.partition
            self._start_other(node, lambda: self._reader.read_somewhere(node, topic, number))

    async def _read_committed(self) -> None:
        node = self._any_process()
        served = [log for log in node.engine.logs if node.serves(log)]
        if served and not node.process.is_paused:
            log = self._random.choice(served)
            self._start_other(node, lambda: self._transactions.read_new(node, log))

    def _transact(self) -> None:
        """Start a producer with transactions; they are few, as each has much to do."""
        if len(self._transactional_producers) < TRANSACTIONAL_IDS_MAX:
            self._number += 1
            producer = TransactionalProducer(
                self._cluster, self._number, self._transactions, self._assumed_leader
            )
            self._transactional_producers.append(producer)
            self._start_producer(producer.run(self._random.randint(1, BATCHES_MAX)))

    def _produce(self) -> None:
        """Start more producers, since the first ones finish early."""
        self._start_producers(self._random.choice([*self._cluster.attempts.values()][-3:]))

    def _change_faults(self) -> None:
        self._cluster.change_faults(
            self._random.choice((NO_FAULTS, NO_FAULTS, SOME_FAULTS, SOME_FAULTS, MANY_FAULTS)),
            self._random.choice(
                (
                    NO_METADATA_FAULTS,
                    SLOW_WATCHES,
                    SOME_METADATA_FAULTS,
                    SOME_METADATA_FAULTS,
                    MANY_METADATA_FAULTS,
                )
            ),
        )

    # --- topics -----------------------------------------------------------------------------------

    def _create_any_topic(self) -> None:
        self._create_topic(self._random.choice(NAMES))

    def _create_topic(self, name: str) -> None:
        topic = self._cluster.new_attempt(name, self._random.randint(1, PARTITIONS_MAX))
        node = self._any_process()
        configs = {
            "retention.ms": "-1",
            "segment.bytes": str(self._random.choice((300, 3000, 1_000_000))),
        }

        async def create() -> None:
            created = await node.topic_store.create(
                name,
                len(topic.partitions),
                configs,
                node.clock(),
                topic.id,
                timeout_ms=self._random.choice((1000, 30_000)),
            )
            await node.node.ownership.wait_for_leaders(created)

        self._start_other(node, create)
        self._start_producers(topic)

    def _delete_topic(self) -> None:
        name = self._random.choice(NAMES)
        node = self._any_process()

        async def delete() -> None:
            self._expect_deletion(name)
            try:
                await node.topic_store.delete(name)
            finally:
                self._expect_deletion(name)

        self._start_other(node, delete)
        if self._random.random() < 0.7:
            self._create_topic(name)

    def _expect_deletion(self, name: str) -> None:
        """From now on any topic of this name that was requested may be deleted."""
        for topic in self._cluster.attempts.values():
            topic.is_deleted |= topic.name == name

    def _grow_topic(self) -> None:
        name = self._random.choice(NAMES)
        node = self._any_process()
        self._start_other(node, lambda: node.topic_store.grow(name, self._random.randint(2, 4)))

    # --- brokers ----------------------------------------------------------------------------------

    def _any_node(self) -> NodeProcess:
        """The newest process of a random broker."""
        nodes = list(self._cluster.nodes.values())
        return self._random.choice(nodes) if nodes else self._cluster.start(0)

    def _any_process(self) -> NodeProcess:
        """A random process, which may have been replaced by another."""
        processes = self._cluster.live_nodes()
        return self._random.choice(processes) if processes else self._cluster.start(0)

    def _drain(self) -> None:
        """Move some partitions of a broker away."""
        node = self._any_node()
        owned = [tp for tp in node.node.ownership.served if tp[0] in NAMES]
        if owned and node.registration.broker is not None:
            some = self._random.sample(owned, self._random.randint(1, len(owned)))
            self._start_other(node, lambda: node.node.drainer.drain(some, 10.0))

    def _reassign(self) -> None:
        """Request brokers for the partitions of a topic; some of them may not be there."""
        node = self._any_process()
        topic = node.topic_store.get(self._random.choice(NAMES))
        if topic is not None:
            requested = {
                number: tuple(self._random.sample(range(NODES_MAX), self._random.randint(1, 2)))
                for number in range(topic.partitions)
            }
            self._start_other(
                node, lambda: node.topic_store.request_replicas(topic.name, topic.id, requested)
            )

    def _rebalance(self) -> None:
        for node in self._cluster.nodes.values():
            if node.node.controller.is_controller:
                self._start_other(node, node.node.controller.rebalance)

    async def _kill(self) -> None:
        node = self._any_node()
        await self._cluster.kill(node)
        self._start_later(node.id)

    async def _restart(self) -> None:
        node = self._any_node()
        if not node.process.is_paused and not node.is_stopping:
            self._start_trouble(self._stop_and_start(node))

    async def _stop_and_start(self, node: NodeProcess) -> None:
        await self._cluster.stop(node)
        await self._start_node_later(node.id)

    def _add_node(self) -> None:
        free = [number for number in range(NODES_MAX) if number not in self._cluster.nodes]
        if free:
            self._cluster.start(free[0])

    def _start_later(self, broker_id: int) -> None:
        if len(self._cluster.nodes) < 1:
            self._cluster.start(broker_id)
        elif self._random.random() < 0.8:
            self._start_trouble(self._start_node_later(broker_id))

    async def _start_node_later(self, broker_id: int) -> None:
        await self._wait(self._random.choice((0, 0.5, 5, 20)))
        if broker_id not in self._cluster.nodes:
            self._cluster.start(broker_id)

    # --- troubles, which end after some time ------------------------------------------------------

    async def _wait(self, seconds: float) -> None:
        """Wait, but not longer than the scenario does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_ending.wait()

    def _outage_seconds(self) -> float:
        return self._random.choice(OUTAGE_SECONDS) * self._random.uniform(0.5, 1)

    def _pause(self) -> None:
        self._start_trouble(self._pause_for(self._any_node(), self._outage_seconds()))

    async def _pause_for(self, node: NodeProcess, seconds: float) -> None:
        node.process.pause()
        await self._wait(seconds)
        node.process.resume()

    def _supersede(self) -> None:
        """A node is paused; another process of the same id is started, and the first resumes."""
        node = self._any_node()
        self._start_trouble(self._pause_for(node, self._outage_seconds()))
        self._cluster.supersede(node)

    def _cut_metadata(self) -> None:
        self._start_trouble(self._cut_metadata_for([self._any_node()], self._outage_seconds()))

    def _stop_metadata(self) -> None:
        nodes = self._cluster.live_nodes()
        self._start_trouble(self._cut_metadata_for(nodes, self._outage_seconds()))

    async def _cut_metadata_for(self, nodes: list[NodeProcess], seconds: float) -> None:
        for node in nodes:
            node.metadata.cut()
        await self._wait(seconds)
        for node in nodes:
            if not node.ended.is_set():
                node.metadata.heal()

    def _cut_objects(self) -> None:
        self._start_trouble(self._cut_objects_for([self._any_node()], self._outage_seconds()))

    def _stop_objects(self) -> None:
        nodes = self._cluster.live_nodes()
        self._start_trouble(self._cut_objects_for(nodes, self._outage_seconds()))

    async def _cut_objects_for(self, nodes: list[NodeProcess], seconds: float) -> None:
        for node in nodes:
            node.objects.is_down = True
        await self._wait(seconds)
        for node in nodes:
            node.objects.is_down = False

    def _step_clock(self) -> None:
        node = self._any_node()
        node.skew_ms += self._random.choice((-1, 1)) * self._random.choice((500, 20_000, 3_600_000))
        self._skew_ms_max = max(self._skew_ms_max, node.skew_ms)

    # --- clients ----------------------------------------------------------------------------------

    def _start_producers(self, topic: SimulatedTopic) -> None:
        for partition in range(len(topic.partitions)):
            for _ in range(self._random.randint(0, 2)):
                self._number += 1
                producer = IdProducer(
                    self._cluster,
                    self._number,
                    topic,
                    partition,
                    idempotent=self._random.random() < 0.7,
                    choose=self._assumed_leader,
                )
                self._id_producers.append(producer)
                self._start_producer(producer.run(self._random.randint(1, BATCHES_MAX)))
        self._number += 1
        by_name = NameProducer(self._cluster, self._number, topic.name, self._assumed_leader)
        self._name_producers.append(by_name)
        self._start_producer(by_name.run(self._random.randint(1, 4 * BATCHES_MAX)))

    def _assumed_leader(self, name: str, partition: int) -> NodeProcess:
        """The process that a client finds in the metadata of some broker, or a wrong one."""
        node = self._any_process()
        leader_id, _ = node.cache.leader(name, partition)
        if self._random.random() < 0.1:
            return self._any_process()
        leaders = [leader for leader in self._cluster.live_nodes() if leader.id == leader_id]
        return self._random.choice(leaders or [node])

    # --- tasks ------------------------------------------------------------------------------------

    def _start_producer(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._producing[asyncio.create_task(coroutine)] = None

    def _start_trouble(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._produce()  # There must be records meanwhile.
        self._troubles[asyncio.create_task(coroutine)] = None

    def _start_other(self, node: NodeProcess, request: Callable[[], Awaitable[Any]]) -> None:
        async def execute() -> None:
            with suppress(KafscaleError):
                await request()

        if node.is_ready:
            self._others[node.call(execute)] = None

    # --- checks -----------------------------------------------------------------------------------

    async def _check(self) -> None:
        for tasks in (self._producing, self._others, self._troubles):
            for task in [task for task in tasks if task.done()]:
                del tasks[task]
                if not task.cancelled():
                    task.result()
        if errors := [error for error in self._errors if not self._is_excused(error)]:
            raise InvariantViolationError(f"a broker has logged an error: {errors}")
        await self._cluster.check_processes()
        await self._cluster.check_owners()
        for _, _, _, log in await self._cluster.served() or ():
            self._transactions.check_stable(log)

    def _is_excused(self, error: dict[str, Any]) -> bool:
        """Whether a broker may have logged this while it opened a topic that was being deleted."""
        return error["event"] in ERRORS_OF_DELETIONS and any(
            topic.is_deleted and topic.name == error["topic"]
            for topic in self._cluster.attempts.values()
        )

    async def _check_at_end(self) -> None:
        await self._end_faults()
        await self._cluster.wait_until_served()
        self._reassign()
        await self._cluster.wait_until_served()
        await self._finish_clients()
        await self._end_transactions()
        await self._read_everything()
        await self._cluster.land_late_requests()
        await asyncio.sleep(self._random.choice((0, 1, 30)))
        await self._cluster.wait_until_served()
        await self._read_everything()
        await self._check_topics()
        await self._take_over()
        await self._read_everything()
        await self._check()

    async def _end_faults(self) -> None:
        self._is_ending.set()
        self._cluster.change_faults(NO_FAULTS, NO_METADATA_FAULTS)
        for _ in range(100):
            if not self._troubles:
                break
            await asyncio.sleep(1)
            await self._check()
        if self._troubles:
            raise InvariantViolationError(f"these do not end: {list(self._troubles)}")
        self._cluster.change_faults(NO_FAULTS, NO_METADATA_FAULTS)
        if not self._cluster.nodes:
            self._cluster.start(0)

    async def _finish_clients(self) -> None:
        for producer in (*self._name_producers, *self._transactional_producers):
            producer.is_stopped = True
        await self._check_topics()
        existing = {topic.id for topic in (await self._cluster.topics()).values()}
        for producer in self._id_producers:
            producer.topic.is_deleted |= producer.topic.id not in existing
        loop = asyncio.get_running_loop()
        until = loop.time() + FINISH_SECONDS_MAX
        while self._producing or self._others:
            await asyncio.sleep(1)
            await self._check()
            if loop.time() > until:
                raise InvariantViolationError(f"clients do not finish: {[*self._producing]}")

    async def _end_transactions(self) -> None:
        """Wait until the transactions of clients that have ended are aborted."""
        for node in self._cluster.live_nodes():
            node.skew_ms = self._skew_ms_max  # A clock that is set back makes them longer.
        until = asyncio.get_running_loop().time() + ENDED_SECONDS_MAX
        while opened := await self._transactions.open():
            await asyncio.sleep(1)
            await self._check()
            if asyncio.get_running_loop().time() > until:
                raise InvariantViolationError(f"transactions do not end: {opened}")

    async def _read_everything(self) -> None:
        for topic in (await self._cluster.topics()).values():
            for number in range(topic.partitions):
                await self._read_all(topic.name, topic.id, number)
        for producer in self._transactional_producers:
            await producer.check_offset()
        await self._check()

    async def _read_all(self, name: str, topic_id: bytes, number: int) -> None:
        """Read a partition from its owner, which may change meanwhile."""
        for _ in range(60):
            topic = (await self._cluster.topics()).get(name)
            if topic is None or topic.id != topic_id:
                return
            owned = await self._cluster.owner_log(topic, number)
            if owned is not None:
                node, log = owned
                read_all = partial(
                    self._reader.read_all, node, self._cluster.known_topic(log), number
                )
                try:
                    await node.call(read_all)
                    await node.call(partial(self._transactions.read_all, node, log))
                except AssertionError:
                    if not log.closed:
                        raise
                else:
                    return
            await asyncio.sleep(1)
        raise InvariantViolationError(f"{name}/{number} could not be read")

    async def _check_topics(self) -> None:
        """A topic whose deletion was never requested exists, if anything was written to it."""
        existing = {topic.id for topic in (await self._cluster.topics()).values()}
        for topic in self._cluster.attempts.values():
            is_used = any(model.known_end for model in topic.partitions)
            if is_used and not topic.is_deleted and topic.id not in existing:
                raise InvariantViolationError(f"{topic.name} with id {topic.id.hex()} is missing")

    async def _take_over(self) -> None:
        """All brokers end, one way or the other, and another starts."""
        for node in self._cluster.live_nodes():
            await (
                self._cluster.kill(node)
                if self._random.random() < 0.5 or node in self._cluster.zombies
                else self._cluster.stop(node)
            )
        await self._cluster.land_late_requests()
        self._cluster.start(self._random.randrange(NODES_MAX))
        await self._cluster.wait_until_served()
