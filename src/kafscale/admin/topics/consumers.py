"""The consumer groups of a topic: those with committed offsets in it or members that read it.

Groups are queried with bounded concurrency, and their number is bounded. A group that was deleted
meanwhile, or whose coordinator returns an error, is left out.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.admin.groups.describe import GroupMember, describe_group, partition_assignments
from kafscale.admin.topics.describe import sum_known
from kafscale.aio.gather import map_limited
from kafscale.client.client import LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError
from kafscale.client.group_offsets import Committed, committed
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.text.topic_partition import TopicPartition

GROUPS_MAX: Final = 500
CONCURRENCY_MAX: Final = 8


class TopicConsumer(msgspec.Struct, frozen=True, rename="camel"):
    """A group that reads a topic."""

    group: str
    state: str
    member_count: int
    lag: int | None
    lag_by_partition: dict[str, int | None]


async def topic_consumers(client: Client, name: str, groups: Sequence[str]) -> list[TopicConsumer]:
    """The groups among `groups` that read a topic, with their lag by partition."""
    topic = await client.topic(name)
    leaders = leaders_of(topic)
    with_leader = [index for index, leader_id in leaders.items() if leader_id != NO_LEADER]
    ends: dict[int, int] = {}
    if with_leader:
        ends = await client.offsets(topic, dict.fromkeys(with_leader, LATEST_TIME))

    async def query(group: str) -> TopicConsumer | None:
        return await _topic_consumer(client, group, topic, ends)

    consumers = await map_limited(query, sorted(groups)[:GROUPS_MAX], CONCURRENCY_MAX)
    return [each for each in consumers if each is not None]


async def _topic_consumer(
    client: Client, group: str, topic: TopicMetadata, ends: dict[int, int]
) -> TopicConsumer | None:
    name = topic.name or ""
    partitions = [(name, partition.index) for partition in topic.partitions]
    try:
        async with Coordinator(client, group) as coordinator:
            description, offsets = await asyncio.gather(
                describe_group(coordinator), committed(coordinator, partitions)
            )
    except BrokerResponseError:
        return None
    assigned = {each for each in partition_assignments(description.members) if each[0] == name}
    if not offsets and not assigned:
        return None
    lags = {
        str(index): _lag((name, index), offsets, ends) for _, index in sorted({*offsets, *assigned})
    }
    return TopicConsumer(
        group=group,
        state=description.state,
        member_count=sum(_reads(member, name) for member in description.members),
        lag=sum_known(lags.values()),
        lag_by_partition=lags,
    )


def _reads(member: GroupMember, topic: str) -> bool:
    return topic in member.topics or topic in member.assignment


def _lag(
    topic_partition: TopicPartition, offsets: dict[TopicPartition, Committed], ends: dict[int, int]
) -> int | None:
    position, end = offsets.get(topic_partition), ends.get(topic_partition[1])
    return None if position is None or end is None else max(0, end - position.offset)
