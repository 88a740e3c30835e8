"""The status of a broker, as a message: what it owns, the other brokers, and problems.

Invariants: everything comes from memory, so that a broker responds while its stores are
unavailable; and it yields to other tasks while it lists many partitions.
"""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from kafscale import __version__
from kafscale.control_plane.messages import BrokerStatusResponse, BrokerSummary, PartitionStatus
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import NO_BROKER, SHARDS_TOPIC, Assignment, BrokerInfo
from kafscale.storage.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from kafscale.broker.control_plane.service import BrokerParts

ONLINE: Final = "online"
MOVING: Final = "moving"
OPENING: Final = "opening"

NO_EPOCH: Final = -1
PARTITIONS_PER_YIELD: Final = 500
"""How many partitions are listed before the event loop runs other tasks."""


async def status(
    parts: "BrokerParts", *, started_ms: int, with_partitions: bool
) -> BrokerStatusResponse:
    broker = parts.registration.broker
    problems = dict(parts.problems())
    if broker is None:
        problems["registration"] = "the broker is joining the cluster"
    controller_id = parts.cache.controller_id
    response = BrokerStatusResponse(
        broker_id=str(parts.broker_id),
        node_id=parts.broker_id,
        version=__version__,
        ready=not problems,
        problems=problems,
        epoch=broker.epoch if broker else NO_EPOCH,
        draining=broker is not None and broker.is_draining,
        is_controller=parts.controller.is_controller,
        controller_id="" if controller_id == NO_BROKER else str(controller_id),
        cluster_id=parts.cluster_id,
        brokers=summaries(parts.cache),
        store_health=parts.store_health(),
        uptime_ms=parts.clock() - started_ms,
        metrics_host=parts.metrics_address.host,
        metrics_port=parts.metrics_address.port,
        idle_seconds=parts.idle_seconds(),
    )
    if broker is None:
        return response
    shards = parts.cache.assignments(SHARDS_TOPIC).values()
    response.shards.extend(sorted(each.partition for each in shards if each.is_owned_by(broker)))
    if with_partitions:
        await _add_partitions(response, parts, broker)
    return response


def summaries(cache: ClusterCache) -> list[BrokerSummary]:
    """All live brokers, with their numbers of partitions and shards."""
    partitions: Counter[int] = Counter()
    shards: Counter[int] = Counter()
    moving: Counter[int] = Counter()
    for assignment in cache.all_assignments():
        owner = cache.brokers.get(assignment.broker_id)
        if assignment.is_owned_by(owner):
            counts = shards if assignment.topic == SHARDS_TOPIC else partitions
            counts[assignment.broker_id] += 1
            moving[assignment.broker_id] += assignment.reassigning_to is not None
    return [
        BrokerSummary(
            broker_id=str(broker.id),
            host=broker.host,
            port=broker.port,
            control_host=broker.control_host,
            control_port=broker.control_port,
            rack=broker.rack,
            version=broker.version,
            epoch=broker.epoch,
            draining=broker.is_draining,
            partition_count=partitions[broker.id],
            shard_count=shards[broker.id],
            moving_count=moving[broker.id],
        )
        for _, broker in sorted(cache.brokers.items())
    ]


async def _add_partitions(
    response: BrokerStatusResponse, parts: "BrokerParts", broker: BrokerInfo
) -> None:
    owned = sorted(
        (each for each in parts.cache.all_assignments() if each.is_owned_by(broker)),
        key=lambda each: (each.topic, each.partition),
    )
    for count, assignment in enumerate(owned, 1):
        if assignment.topic != SHARDS_TOPIC:
            log = parts.storage.logs.get(assignment.topic, assignment.partition)
            response.partitions.append(_partition(assignment, log))
        if count % PARTITIONS_PER_YIELD == 0:
            await asyncio.sleep(0)


def _partition(assignment: Assignment, log: PartitionLog | None) -> PartitionStatus:
    status = PartitionStatus(
        topic=assignment.topic,
        partition=assignment.partition,
        leader_epoch=assignment.leader_epoch,
        state=OPENING,
    )
    if log is None:
        return status
    status.leader = True
    status.state = ONLINE
    if assignment.reassigning_to is not None:
        status.state = MOVING
        status.moving_to = str(assignment.reassigning_to)
    status.log_start_offset = log.start_offset
    status.log_end_offset = log.end_offset
    status.high_watermark = log.high_watermark
    status.rolled_offset = log.tail.rolled_offset
    status.size_bytes = log.segments.total_bytes + log.tail.unrolled_bytes
    return status
