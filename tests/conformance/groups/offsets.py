"""Offset requests, in short form; with topic ids if the version has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.groups.comparison import ComparisonClient, ExpectedDifference, Response
from conformance.groups.normalization import topic_id
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)

COMMIT_VERSIONS: Final = [2, 3, 4, 5, 6, 7, 8, 9, 10]
FETCH_VERSIONS: Final = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"""Kafka 4 does not know older ones."""

SEVERAL_SINCE: Final = 8

Partitions = Mapping[str, Sequence[int]]


def commit(
    client: ComparisonClient,
    version: int = 9,
    *,
    partitions: Partitions | None = None,
    group: str | None = None,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    **fields: Any,
) -> list[int]:
    """Commit the same offset for all partitions; return the error codes in order."""
    partitions = {"one": [0]} if partitions is None else partitions
    fields = {"committed_offset": 7, **fields}
    request = OffsetCommitRequest(
        group_id=client.group if group is None else group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            TopicToCommit(
                name=topic,
                topic_id=topic_id(topic),
                partitions=[PartitionToCommit(index=index, **fields) for index in indexes],
            )
            for topic, indexes in partitions.items()
        ],
    )
    response = client.call(OFFSET_COMMIT, version, request)
    return [each.error_code for topic in response.topics for each in topic.partitions]


def fetch(
    client: ComparisonClient,
    version: int = 9,
    *,
    partitions: Partitions | None = None,
    groups: Sequence[str] = (),
    member: str | None = None,
    epoch: int = -1,
    require_stable: bool = False,
    ours: ExpectedDifference | None = None,
) -> Response:
    """The committed offsets of groups: of all partitions, or of some."""
    topics = partitions and [
        TopicToFetch(name=topic, topic_id=topic_id(topic), partitions=list(indexes))
        for topic, indexes in partitions.items()
    ]
    topics = [] if partitions == {} else topics
    groups = groups or [client.group]
    request = OffsetFetchRequest(
        group_id=groups[0],
        topics=topics,
        groups=[
            GroupToFetch(group_id=group, member_id=member, member_epoch=epoch, topics=topics)
            for group in groups
        ],
        require_stable=require_stable,
    )
    return client.call(OFFSET_FETCH, version, request, ours=ours)


def fetched_code(response: Response) -> int:
    """The error code of the only group, from version 8 on."""
    (group,) = response.groups
    return int(group.error_code)
