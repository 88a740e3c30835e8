"""What `kafscale cluster` asks of brokers, and makes of their answers: data for tables and JSON."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from kafscale.admin.cluster.control_client import Cluster
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    BrokerSummary,
    Move,
    PartitionRef,
    PartitionStatus,
)
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError, UnknownTopicError
from kafscale.net.host_port import Address

LOOK_SECONDS: Final = 0.5
"""How often progress is looked at."""

Progress = Callable[[int, int], None]
"""Is told how much is done, and how much there is to do."""


async def status(cluster: Cluster, *, with_partitions: bool) -> dict[str, Any]:
    """All brokers, and what they own if that is asked for."""
    first = cluster.first
    answers = await cluster.statuses(with_partitions=with_partitions)
    told: dict[str, Any] = {
        "clusterId": first.cluster_id,
        "controller": int(first.controller_id) if first.controller_id else None,
        "brokers": [
            _broker(broker_id, cluster.brokers.get(broker_id), answer, first.controller_id)
            for broker_id, answer in answers.items()
        ],
    }
    if with_partitions:
        told["partitions"] = sorted(
            (
                _partition(answer, owned)
                for answer in answers.values()
                if isinstance(answer, BrokerStatusResponse)
                for owned in answer.partitions
            ),
            key=lambda each: (each["topic"], each["partition"]),
        )
    return told


async def drain(
    cluster: Cluster,
    broker_id: str,
    *,
    reason: str,
    deadline_seconds: int,
    progress: Progress,
    look_seconds: float = LOOK_SECONDS,
) -> dict[str, Any]:
    """Have a broker hand everything over; what is gone, and what was not in time."""
    client = await cluster.client(broker_id)
    others = [
        other
        for other in cluster.brokers.values()
        if other.broker_id != broker_id and not other.draining
    ]
    if not others:
        raise KafscaleError(f"there is no other broker that could take over from {broker_id}")
    total = _owned_count(await client.status(with_partitions=False))
    draining = asyncio.ensure_future(client.drain(reason=reason, deadline_seconds=deadline_seconds))
    while not draining.done():
        await asyncio.wait({draining}, timeout=look_seconds)
        try:
            left = _owned_count(await client.status(with_partitions=False))
        except ControlError:
            continue  # The answer of the drain itself will tell.
        progress(max(total - left, 0), total)
    answer = draining.result()
    return {
        "broker": int(broker_id),
        "drained": _partitions(answer.drained),
        "pending": _partitions(answer.pending),
    }


async def flush(cluster: Cluster, topic: str, partitions: Collection[int]) -> list[dict[str, Any]]:
    """Have segments made of some partitions of a topic; no topic is everything."""
    if not topic:
        broker_ids = sorted(cluster.brokers, key=int) or [cluster.first.broker_id]
        flushed = await asyncio.gather(*(_flush(cluster, each, None) for each in broker_ids))
        return [each for found in flushed for each in found]
    owners = await _owners(cluster, topic)
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
        *(_flush(cluster, broker_id, named) for broker_id, named in by_broker.items())
    )
    return sorted(
        (each for found in flushed for each in found), key=lambda each: int(each["partition"])
    )


async def rebalance(
    cluster: Cluster, *, seconds_max: float, progress: Progress, look_seconds: float = LOOK_SECONDS
) -> list[dict[str, Any]]:
    """Have the controller plan, and again, until nothing moves any more; all moves there were."""
    controller = await cluster.controller()
    seen: dict[tuple[Partition, str], dict[str, Any]] = {}
    deadline = asyncio.get_running_loop().time() + seconds_max
    while True:
        answer = await controller.rebalance()
        moving = {(Partition.of(move.partition), move.to_broker): move for move in answer.moves}
        for key, move in moving.items():
            seen.setdefault(key, _move(move))
        for key, told in seen.items():
            told["done"] = key not in moving
        progress(len(seen) - len(moving), len(seen))
        if not moving or asyncio.get_running_loop().time() >= deadline:
            return list(seen.values())
        await asyncio.sleep(look_seconds)


async def _owners(cluster: Cluster, topic: str) -> Mapping[int, str]:
    """Who serves the partitions of a topic."""
    answers = await cluster.statuses(with_partitions=True)
    return {
        owned.partition: broker_id
        for broker_id, answer in answers.items()
        if isinstance(answer, BrokerStatusResponse)
        for owned in answer.partitions
        if owned.topic == topic
    }


async def _flush(
    cluster: Cluster, broker_id: str, partitions: list[Partition] | None
) -> list[dict[str, Any]]:
    client = await cluster.client(broker_id)
    return [
        {"topic": each.topic, "partition": each.number, "broker": int(broker_id)}
        for each in await client.flush(partitions)
    ]


def _broker(
    broker_id: str,
    known: BrokerSummary | None,
    answer: BrokerStatusResponse | KafscaleError,
    controller_id: str,
) -> dict[str, Any]:
    """One broker: what the cluster knows of it, and what it says itself."""
    known = known or BrokerSummary(broker_id=broker_id)
    told = {
        "id": int(broker_id),
        "address": _address(known.host, known.port),
        "control": _address(known.control_host or known.host, known.control_port),
        "rack": known.rack or None,
        "version": known.version,
        "epoch": known.epoch,
        "isController": broker_id == controller_id,
        "draining": known.draining,
        "partitionCount": known.partition_count,
        "shardCount": known.shard_count,
        "movingCount": known.moving_count,
    }
    if isinstance(answer, KafscaleError):
        return told | {
            "state": "unreachable",
            "problems": {"control plane": str(answer)},
            "storeHealth": None,
            "uptimeMs": None,
        }
    ready = "draining" if answer.draining else "ready"
    return told | {
        "state": ready if answer.ready else "not ready",
        "problems": dict(answer.problems),
        "storeHealth": answer.store_health,
        "uptimeMs": answer.uptime_ms,
    }


def _partition(broker: BrokerStatusResponse, owned: PartitionStatus) -> dict[str, Any]:
    return {
        "topic": owned.topic,
        "partition": owned.partition,
        "broker": int(broker.broker_id),
        "state": owned.state,
        "movingTo": int(owned.moving_to) if owned.moving_to else None,
        "leaderEpoch": owned.leader_epoch,
        "startOffset": owned.log_start_offset,
        "rolledOffset": owned.rolled_offset,
        "highWatermark": owned.high_watermark,
        "endOffset": owned.log_end_offset,
        "sizeBytes": owned.size_bytes,
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "from": int(move.from_broker),
        "to": int(move.to_broker),
        "done": False,
    }


def _partitions(messages: Iterable[PartitionRef]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in messages]


def _address(host: str, port: int) -> str | None:
    return str(Address(host, port)) if host and port else None


def _owned_count(answer: BrokerStatusResponse) -> int:
    mine = (each for each in answer.brokers if each.broker_id == answer.broker_id)
    return sum(each.partition_count + each.shard_count for each in mine)
