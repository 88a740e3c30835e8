"""Fetches and commits the offsets of a group, by topic name.

v10 of OffsetFetch and OffsetCommit, which use topic ids, is not used: users name topics, and a
group may have offsets of deleted topics.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError, Pause, check, retry
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
)
from kafscale.text.topic_partition import TopicPartition

VERSION_BY_NAME_MAX: Final = 9
NO_GENERATION: Final = -1


class Committed(NamedTuple):
    """The committed offset of a partition."""

    offset: int
    leader_epoch: int
    metadata: str


async def committed(
    coordinator: Coordinator,
    topic_partitions: Iterable[TopicPartition] | None = None,
    *,
    stable: bool = False,
    pause: Pause = asyncio.sleep,
) -> dict[TopicPartition, Committed]:
    """Fetch the committed offsets of these partitions, or of all.

    With `stable`, wait until no open transaction may change them.
    """
    topics = (
        None
        if topic_partitions is None
        else [TopicToFetch(name=n, partitions=p) for n, p in by_topic(topic_partitions)]
    )
    group = GroupToFetch(group_id=coordinator.group_id, topics=topics)
    request = OffsetFetchRequest(
        group_id=group.group_id, topics=topics, groups=[group], require_stable=stable
    )

    async def once() -> dict[TopicPartition, Committed]:
        response = await coordinator.ask(
            OFFSET_FETCH, request, _fetch_code, version_max=VERSION_BY_NAME_MAX
        )
        return _committed(coordinator, response)

    return await (retry(once, _is_unstable, pause) if stable else once())


def _committed(
    coordinator: Coordinator, response: OffsetFetchResponse
) -> dict[TopicPartition, Committed]:
    """The offsets of a response; raises an error if it has one."""
    subject = f"group {coordinator.group_id}"
    check(subject, _fetch_code(response))
    offsets = {}
    for topic in response.groups[0].topics if response.groups else response.topics:
        for partition in topic.partitions:
            check(
                f"{subject}, {format_topic_partition((topic.name, partition.index))}",
                partition.error_code,
            )
            if partition.committed_offset >= 0:
                offsets[topic.name, partition.index] = Committed(
                    partition.committed_offset, partition.leader_epoch, partition.metadata or ""
                )
    return offsets


async def commit(
    coordinator: Coordinator,
    offsets: Mapping[TopicPartition, int],
    *,
    generation: int = NO_GENERATION,
    member_id: str = "",
) -> None:
    """Commit offsets as a member, or without one if the group has no members."""
    topics = [
        TopicToCommit(
            name=name,
            partitions=[
                PartitionToCommit(index=index, committed_offset=offsets[name, index])
                for index in indexes
            ],
        )
        for name, indexes in by_topic(offsets)
    ]
    request = OffsetCommitRequest(
        group_id=coordinator.group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=topics,
    )
    response = await coordinator.ask(
        OFFSET_COMMIT, request, _commit_code, version_max=VERSION_BY_NAME_MAX
    )
    for topic in response.topics:
        for partition in topic.partitions:
            name = format_topic_partition((topic.name, partition.index))
            check(f"group {coordinator.group_id}, {name}", partition.error_code)


def by_topic(topic_partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Group partitions by topic, sorted.

    >>> by_topic([("orders", 1), ("users", 0), ("orders", 0)])
    [('orders', [0, 1]), ('users', [0])]
    """
    indexes: dict[str, list[int]] = {}
    for name, index in sorted(topic_partitions):
        indexes.setdefault(name, []).append(index)
    return list(indexes.items())


def format_topic_partition(topic_partition: TopicPartition) -> str:
    topic, partition = topic_partition
    return f"topic {topic}, partition {partition}"


def _is_unstable(error: KafscaleError) -> bool:
    return (
        isinstance(error, BrokerResponseError)
        and error.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    )


def _fetch_code(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


def _commit_code(response: OffsetCommitResponse) -> int:
    """The first error; a broker that is not the coordinator returns it for all partitions."""
    codes = (each.error_code for topic in response.topics for each in topic.partitions)
    return next(filter(None, codes), 0)
