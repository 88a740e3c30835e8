"""Who reads a topic: the groups that have committed something of it or are given some of it.

The law: groups are asked so many at a time and so many at most; one that is gone meanwhile, or
whose coordinator says no, is left out rather than failing the rest.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kafscale.admin.groups.describe import assigned_to, description
from kafscale.admin.topics.describe import total
from kafscale.aio.gather import gather_or_cancel
from kafscale.client.client import LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError
from kafscale.client.group_offsets import Committed, committed
from kafscale.groups.model import TopicPartition
from kafscale.protocol.messages.metadata import TopicMetadata

Data = dict[str, Any]

GROUPS_MAX: Final = 500
AT_ONCE_MAX: Final = 8


async def topic_consumers(client: Client, name: str, groups: Sequence[str]) -> list[Data]:
    """Those of the groups that read a topic, with how far each lags behind in its partitions."""
    topic = await client.topic(name)
    leaders = leaders_of(topic)
    led = [index for index, leader_id in leaders.items() if leader_id != NO_LEADER]
    ends = await client.offsets(topic, dict.fromkeys(led, LATEST_TIME)) if led else {}
    turns = asyncio.Semaphore(AT_ONCE_MAX)

    async def one(group: str) -> Data | None:
        async with turns:
            return await _consumer(client, group, topic, ends)

    found = await gather_or_cancel(one(group) for group in sorted(groups)[:GROUPS_MAX])
    return [each for each in found if each is not None]


async def _consumer(
    client: Client, group: str, topic: TopicMetadata, ends: dict[int, int]
) -> Data | None:
    name = topic.name or ""
    places = [(name, partition.index) for partition in topic.partitions]
    try:
        async with Coordinator(client, group) as coordinator:
            described, found = await asyncio.gather(
                description(coordinator), committed(coordinator, places)
            )
    except AnsweredError:
        return None
    read = {place for place in assigned_to(described["members"]) if place[0] == name}
    if not found and not read:
        return None
    lags = {str(index): _lag((name, index), found, ends) for _, index in sorted({*found, *read})}
    return {
        "group": group,
        "state": described["state"],
        "memberCount": sum(_reads(member, name) for member in described["members"]),
        "lag": total(lags.values()),
        "lagByPartition": lags,
    }


def _reads(member: Data, topic: str) -> bool:
    return topic in member["topics"] or topic in member["assignment"]


def _lag(
    place: TopicPartition, found: dict[TopicPartition, Committed], ends: dict[int, int]
) -> int | None:
    position, end = found.get(place), ends.get(place[1])
    return None if position is None or end is None else max(0, end - position.offset)
