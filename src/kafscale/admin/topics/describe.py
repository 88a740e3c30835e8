"""One topic as its owners see it: who serves each partition, and how far it is durable and rolled.

The law: the owners themselves are asked, over the control plane, within a time limit; of those that
do not answer, Kafka's protocol tells at least where partitions begin and end, and the rest is None
rather than a guess.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafscale.admin.cluster.control_client import Cluster
from kafscale.admin.connection import Reach
from kafscale.aio.gather import gather_or_cancel
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.errors import AnsweredError
from kafscale.client.retry import retried
from kafscale.control_plane.messages import PartitionStatus
from kafscale.errors import KafscaleError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import PartitionMetadata, TopicMetadata

Data = dict[str, Any]

OWNER_SECONDS_MAX: Final = 3.0
"""How long an owner may take to tell of its partitions."""

LEADERLESS: Final = "leaderless"
SILENT: Final = "unknown"


async def look(reach: Reach, name: str, *, is_new: bool = False) -> Data:
    """A topic with its partitions; an error says that there is none of this name.

    One that was just created need not be known to every broker yet: it is asked for until it is.
    """
    async with reach.client() as client:
        topic = await (_known_soon(client, name) if is_new else client.topic(name))
        statuses = await _statuses(reach, topic)
        silent = [
            index
            for index, leader_id in leaders_of(topic).items()
            if leader_id != NO_LEADER and index not in statuses
        ]
        bounds = await _bounds(client, topic, silent)
    partitions = [
        _partition(partition, statuses.get(partition.index), bounds.get(partition.index))
        for partition in sorted(topic.partitions, key=lambda each: each.index)
    ]
    return {
        "name": topic.name,
        "topicId": topic.topic_id.hex(),
        "internal": topic.is_internal,
        "partitionCount": len(partitions),
        "leaderlessCount": sum(each["leader"] is None for each in partitions),
        "recordCount": total(each["recordCount"] for each in partitions),
        "sizeBytes": total(each["sizeBytes"] for each in partitions),
        "partitions": partitions,
    }


def find_partition(topic: Data, index: int) -> Data:
    """A partition of a topic that was looked at."""
    partitions: list[Data] = topic["partitions"]
    for partition in partitions:
        if partition["partition"] == index:
            return partition
    raise UnknownTopicError(
        f"topic {topic['name']} has no partition {index}, only 0 to {len(partitions) - 1}"
    )


def total(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if nothing is.

    >>> total([1, None, 2]), total([None]), total([])
    (3, None, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if known else None


async def _known_soon(client: Client, name: str) -> TopicMetadata:
    def is_unknown(error: KafscaleError) -> bool:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return isinstance(error, AnsweredError) and error.answer is unknown

    return await retried(lambda: client.topic(name), is_unknown)


async def _statuses(reach: Reach, topic: TopicMetadata) -> dict[int, PartitionStatus]:
    """What the leaders that answer tell of their partitions."""
    leaders = leaders_of(topic)
    leader_ids = sorted({each for each in leaders.values() if each != NO_LEADER})
    try:
        async with asyncio.timeout(2 * OWNER_SECONDS_MAX), reach.cluster() as cluster:
            answers = await gather_or_cancel(
                _owned(cluster, leader_id, topic.name or "") for leader_id in leader_ids
            )
    except (KafscaleError, TimeoutError):
        return {}
    return {
        owned.partition: owned
        for leader_id, answer in zip(leader_ids, answers, strict=True)
        for owned in answer
        if leaders.get(owned.partition) == leader_id
    }


async def _owned(cluster: Cluster, broker_id: int, topic: str) -> list[PartitionStatus]:
    try:
        async with asyncio.timeout(OWNER_SECONDS_MAX):
            client = await cluster.client(str(broker_id))
            answer = await client.status()
    except (KafscaleError, TimeoutError):
        return []
    return [owned for owned in answer.partitions if owned.topic == topic]


async def _bounds(
    client: Client, topic: TopicMetadata, indexes: list[int]
) -> Mapping[int, tuple[int, int]]:
    """Where partitions begin and end, as Kafka's protocol tells it; nothing if it does not."""
    if not indexes:
        return {}
    try:
        starts, ends = await gather_or_cancel(
            client.offsets(topic, dict.fromkeys(indexes, time_ms))
            for time_ms in (EARLIEST_TIME, LATEST_TIME)
        )
    except KafscaleError:
        return {}
    return {index: (starts[index], ends[index]) for index in indexes}


def _partition(
    known: PartitionMetadata, status: PartitionStatus | None, bounds: tuple[int, int] | None
) -> Data:
    has_leader = known.leader_id != NO_LEADER
    about: Data = {
        "partition": known.index,
        "leader": known.leader_id if has_leader else None,
        "leaderEpoch": known.leader_epoch,
    }
    if status is not None:
        return about | {
            "state": status.state,
            "movingTo": int(status.moving_to) if status.moving_to else None,
            "startOffset": status.log_start_offset,
            "rolledOffset": status.rolled_offset,
            "highWatermark": status.high_watermark,
            "endOffset": status.log_end_offset,
            "recordCount": status.high_watermark - status.log_start_offset,
            "sizeBytes": status.size_bytes,
        }
    start, end = bounds or (None, None)
    return about | {
        "state": SILENT if has_leader else LEADERLESS,
        "movingTo": None,
        "startOffset": start,
        "rolledOffset": None,
        "highWatermark": end,
        "endOffset": None,
        "recordCount": None if start is None or end is None else end - start,
        "sizeBytes": None,
    }
