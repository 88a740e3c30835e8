"""Status, drain, flush and rebalance of brokers over the control plane."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from kafscale.admin.cluster.broker import (
    BrokerStatus,
    ServedPartition,
    build_status,
    served_partitions,
)
from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import BrokerStatusResponse, Move, Partition, PartitionRef
from kafscale.errors import KafscaleError, UnknownTopicError

POLL_SECONDS: Final = 0.5
"""The interval between progress checks."""

Progress = Callable[[int, int], None]
"""Called with the amount done and the total amount."""


class ClusterStatus(msgspec.Struct, rename="camel"):
    cluster_id: str
    controller: int | None
    brokers: list[BrokerStatus]
    partitions: list[ServedPartition] | UnsetType = UNSET
    """By topic and partition; unset if they were not requested."""


class PartitionName(msgspec.Struct, frozen=True):
    topic: str
    partition: int


class DrainResult(msgspec.Struct):
    broker: int
    drained: list[PartitionName]
    pending: list[PartitionName]
    """Not transferred before the deadline."""


class FlushedPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    broker: int


class PartitionMove(msgspec.Struct):
    topic: str
    partition: int
    source: int = msgspec.field(name="from")
    target: int = msgspec.field(name="to")
    done: bool


async def status(control: ClusterControlClient, *, with_partitions: bool) -> ClusterStatus:
    """The status of all brokers, and the partitions that they own if requested."""
    first = control.first_status
    controller = int(first.controller_id) if first.controller_id else None
    responses = await control.statuses(with_partitions=with_partitions)
    result = ClusterStatus(
        cluster_id=first.cluster_id,
        controller=controller,
        brokers=[
            build_status(int(broker_id), control.brokers.get(broker_id), response, controller)
            for broker_id, response in responses.items()
        ],
    )
    if with_partitions:
        result.partitions = sorted(
            (
                partition
                for response in responses.values()
                if isinstance(response, BrokerStatusResponse)
                for partition in served_partitions(response)
            ),
            key=lambda each: (each.topic, each.partition),
        )
    return result


async def drain(
    control: ClusterControlClient,
    broker_id: str,
    *,
    reason: str,
    deadline_seconds: int,
    progress: Progress,
    poll_seconds: float = POLL_SECONDS,
) -> DrainResult:
    """Have a broker transfer everything it owns to other brokers."""
    client = await control.client(broker_id)
    others = [
        other
        for other in control.brokers.values()
        if other.broker_id != broker_id and not other.draining
    ]
    if not others:
        raise KafscaleError(f"there is no other broker that could take over from {broker_id}")
    total = _owned_count(await client.status(with_partitions=False))
    draining = asyncio.ensure_future(client.drain(reason=reason, deadline_seconds=deadline_seconds))
    while not draining.done():
        await asyncio.wait({draining}, timeout=poll_seconds)
        try:
            remaining = _owned_count(await client.status(with_partitions=False))
        except ControlError:
            continue  # If the broker failed, the drain request fails as well.
        progress(max(total - remaining, 0), total)
    response = draining.result()
    return DrainResult(
        broker=int(broker_id),
        drained=_partition_names(response.drained),
        pending=_partition_names(response.pending),
    )


async def flush(
    control: ClusterControlClient, topic: str, partitions: Collection[int]
) -> list[FlushedPartition]:
    """Have brokers write segments of some partitions of a topic; an empty topic means all."""
    if not topic:
        broker_ids = sorted(control.brokers, key=int) or [control.first_status.broker_id]
        flushed = await asyncio.gather(*(_flush(control, each, None) for each in broker_ids))
        return [partition for of_broker in flushed for partition in of_broker]
    owners = await _owners(control, topic)
    missing = sorted(set(partitions) - owners.keys())
    if missing:
        raise UnknownTopicError(f"no broker serves {Partition(topic, missing[0])}")
    if not owners:
        raise UnknownTopicError(f"no broker serves topic {topic!r}")
    by_broker: dict[str, list[Partition]] = {}
    for number, broker_id in owners.items():
        if not partitions or number in partitions:
            by_broker.setdefault(broker_id, []).append(Partition(topic, number))
    flushed = await asyncio.gather(
        *(_flush(control, broker_id, chosen) for broker_id, chosen in by_broker.items())
    )
    return sorted(
        (partition for of_broker in flushed for partition in of_broker),
        key=lambda each: each.partition,
    )


async def rebalance(
    control: ClusterControlClient,
    *,
    seconds_max: float,
    progress: Progress,
    poll_seconds: float = POLL_SECONDS,
) -> list[PartitionMove]:
    """Have the controller rebalance until nothing moves any more; return all moves."""
    controller = await control.controller()
    moves: dict[tuple[Partition, str], PartitionMove] = {}
    deadline = asyncio.get_running_loop().time() + seconds_max
    while True:
        response = await controller.rebalance()
        pending = {(Partition.of(move.partition), move.to_broker): move for move in response.moves}
        for key, move in pending.items():
            moves.setdefault(key, _partition_move(move))
        for key, known in moves.items():
            known.done = key not in pending
        progress(len(moves) - len(pending), len(moves))
        if not pending or asyncio.get_running_loop().time() >= deadline:
            return list(moves.values())
        await asyncio.sleep(poll_seconds)


async def _owners(control: ClusterControlClient, topic: str) -> Mapping[int, str]:
    """The broker of each partition of a topic."""
    responses = await control.statuses(with_partitions=True)
    return {
        owned.partition: broker_id
        for broker_id, response in responses.items()
        if isinstance(response, BrokerStatusResponse)
        for owned in response.partitions
        if owned.topic == topic
    }


async def _flush(
    control: ClusterControlClient, broker_id: str, partitions: list[Partition] | None
) -> list[FlushedPartition]:
    client = await control.client(broker_id)
    return [
        FlushedPartition(each.topic, each.number, int(broker_id))
        for each in await client.flush(partitions)
    ]


def _partition_move(move: Move) -> PartitionMove:
    return PartitionMove(
        topic=move.partition.topic,
        partition=move.partition.partition,
        source=int(move.from_broker),
        target=int(move.to_broker),
        done=False,
    )


def _partition_names(messages: Iterable[PartitionRef]) -> list[PartitionName]:
    return [PartitionName(each.topic, each.partition) for each in messages]


def _owned_count(response: BrokerStatusResponse) -> int:
    own = (each for each in response.brokers if each.broker_id == response.broker_id)
    return sum(each.partition_count + each.shard_count for each in own)
