"""What a group has committed: read and written through its coordinator, by names of topics.

Offsets have a version in which topics go by their ids (v10). It is not used here: people name
topics, and a group may well have offsets of topics that are gone.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import check
from kafscale.groups.model import TopicPartition
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

VERSION_BY_NAME_MAX: Final = 9
NO_GENERATION: Final = -1


class Committed(NamedTuple):
    """How far a group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str


async def committed(
    coordinator: Coordinator, places: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Committed]:
    """What the group has committed of these partitions; of all, without any."""
    topics = (
        None
        if places is None
        else [TopicToFetch(name=n, partitions=p) for n, p in by_topic(places)]
    )
    group = GroupToFetch(group_id=coordinator.group_id, topics=topics)
    request = OffsetFetchRequest(group_id=group.group_id, topics=topics, groups=[group])
    response = await coordinator.ask(
        OFFSET_FETCH, request, _fetch_code, version_max=VERSION_BY_NAME_MAX
    )
    subject = f"group {coordinator.group_id}"
    check(subject, _fetch_code(response))
    found = {}
    for topic in response.groups[0].topics if response.groups else response.topics:
        for partition in topic.partitions:
            check(
                f"{subject}, {place_in_words((topic.name, partition.index))}", partition.error_code
            )
            if partition.committed_offset >= 0:
                found[topic.name, partition.index] = Committed(
                    partition.committed_offset, partition.leader_epoch, partition.metadata or ""
                )
    return found


async def commit(
    coordinator: Coordinator,
    offsets: Mapping[TopicPartition, int],
    *,
    generation: int = NO_GENERATION,
    member_id: str = "",
) -> None:
    """Commit offsets, as a member, or from outside of a group that has none."""
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
            place = place_in_words((topic.name, partition.index))
            check(f"group {coordinator.group_id}, {place}", partition.error_code)


def by_topic(places: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions in order, under their topics.

    >>> by_topic([("orders", 1), ("users", 0), ("orders", 0)])
    [('orders', [0, 1]), ('users', [0])]
    """
    found: dict[str, list[int]] = {}
    for name, index in sorted(places):
        found.setdefault(name, []).append(index)
    return list(found.items())


def place_in_words(place: TopicPartition) -> str:
    return f"topic {place[0]}, partition {place[1]}"


def _fetch_code(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


def _commit_code(response: OffsetCommitResponse) -> int:
    """A coordinator that is not in charge refuses all partitions alike."""
    codes = (each.error_code for topic in response.topics for each in topic.partitions)
    return next(filter(None, codes), 0)
