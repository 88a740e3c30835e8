"""One topic as its owners report it: the broker and the offsets of each partition.

Owners are queried over the control plane, within a time limit. For partitions whose owner does not
respond, Kafka's protocol supplies the start and end offsets; other fields are None.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.admin.connection import ClusterConnections
from kafscale.admin.topics.usage import TopicUsage
from kafscale.aio.gather import gather_or_cancel
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.errors import BrokerResponseError, retry
from kafscale.control_plane.messages import PartitionStatus
from kafscale.errors import KafscaleError, UnknownTopicError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import PartitionMetadata, TopicMetadata

OWNER_SECONDS_MAX: Final = 3.0
"""How long an owner may take to return the status of its partitions."""

LEADERLESS: Final = "leaderless"
UNKNOWN: Final = "unknown"


class PartitionDescription(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A partition; fields that only its owner knows are None if that did not respond."""

    partition: int
    leader: int | None
    leader_epoch: int
    state: str
    moving_to: int | None = None
    start_offset: int | None
    rolled_offset: int | None = None
    """Records below it are in segments; from here to the high watermark they are in the WAL."""
    high_watermark: int | None
    end_offset: int | None = None
    record_count: int | None
    size_bytes: int | None = None


class TopicDescription(TopicUsage, frozen=True, gc=True):
    """A topic at one time, and its partitions."""

    partitions: list[PartitionDescription]

    def find_partition(self, index: int) -> PartitionDescription:
        """The partition with an index; raises `UnknownTopicError` if there is none."""
        for partition in self.partitions:
            if partition.partition == index:
                return partition
        raise UnknownTopicError(
            f"topic {self.name} has no partition {index}, only 0 to {len(self.partitions) - 1}"
        )


async def describe_topic(
    connections: ClusterConnections, name: str, *, is_new: bool = False
) -> TopicDescription:
    """Describe a topic and its partitions; raises an error if it does not exist.

    A topic that was just created (`is_new`) may not be known to every broker yet; the request is
    retried until it is.
    """
    async with connections.client() as client:
        topic = await (_wait_until_known(client, name) if is_new else client.topic(name))
        statuses = await _statuses(connections, topic)
        without_status = [
            index
            for index, leader_id in leaders_of(topic).items()
            if leader_id != NO_LEADER and index not in statuses
        ]
        offsets = await _start_and_end_offsets(client, topic, without_status)
    partitions = [
        _partition(partition, statuses.get(partition.index), offsets.get(partition.index))
        for partition in sorted(topic.partitions, key=lambda each: each.index)
    ]
    return TopicDescription(
        name=topic.name or name,
        topic_id=topic.topic_id.hex(),
        internal=topic.is_internal,
        partition_count=len(partitions),
        leaderless_count=sum(each.leader is None for each in partitions),
        record_count=sum_known(each.record_count for each in partitions),
        size_bytes=sum_known(each.size_bytes for each in partitions),
        partitions=partitions,
    )


def sum_known(values: Iterable[int | None]) -> int | None:
    """The sum of the values that are not None; None if there are none.

    >>> sum_known([1, None, 2]), sum_known([None]), sum_known([])
    (3, None, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if known else None


async def _wait_until_known(client: Client, name: str) -> TopicMetadata:
    def is_unknown(error: KafscaleError) -> bool:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return isinstance(error, BrokerResponseError) and error.error_code is unknown

    return await retry(lambda: client.topic(name), is_unknown)


async def _statuses(
    connections: ClusterConnections, topic: TopicMetadata
) -> dict[int, PartitionStatus]:
    """The status of each partition whose leader responds."""
    leaders = leaders_of(topic)
    leader_ids = sorted({each for each in leaders.values() if each != NO_LEADER})
    try:
        async with asyncio.timeout(2 * OWNER_SECONDS_MAX), connections.control_plane() as control:
            by_leader = await gather_or_cancel(
                _owned_partitions(control, leader_id, topic.name or "") for leader_id in leader_ids
            )
    except (KafscaleError, TimeoutError):
        return {}
    return {
        owned.partition: owned
        for leader_id, partitions in zip(leader_ids, by_leader, strict=True)
        for owned in partitions
        if leaders.get(owned.partition) == leader_id
    }


async def _owned_partitions(
    control: ClusterControlClient, broker_id: int, topic: str
) -> list[PartitionStatus]:
    try:
        async with asyncio.timeout(OWNER_SECONDS_MAX):
            client = await control.client(str(broker_id))
            response = await client.status()
    except (KafscaleError, TimeoutError):
        return []
    return [owned for owned in response.partitions if owned.topic == topic]


async def _start_and_end_offsets(
    client: Client, topic: TopicMetadata, indexes: list[int]
) -> Mapping[int, tuple[int, int]]:
    """The start and end offsets of partitions from ListOffsets; empty if that fails."""
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
    metadata: PartitionMetadata, status: PartitionStatus | None, offsets: tuple[int, int] | None
) -> PartitionDescription:
    leader = metadata.leader_id if metadata.leader_id != NO_LEADER else None
    if status is not None:
        return PartitionDescription(
            partition=metadata.index,
            leader=leader,
            leader_epoch=metadata.leader_epoch,
            state=status.state,
            moving_to=int(status.moving_to) if status.moving_to else None,
            start_offset=status.log_start_offset,
            rolled_offset=status.rolled_offset,
            high_watermark=status.high_watermark,
            end_offset=status.log_end_offset,
            record_count=status.high_watermark - status.log_start_offset,
            size_bytes=status.size_bytes,
        )
    start, end = offsets or (None, None)
    return PartitionDescription(
        partition=metadata.index,
        leader=leader,
        leader_epoch=metadata.leader_epoch,
        state=LEADERLESS if leader is None else UNKNOWN,
        start_offset=start,
        high_watermark=end,
        record_count=None if start is None or end is None else end - start,
    )
