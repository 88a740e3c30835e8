"""How groups are asked for offsets, in few words; topics go by id where the version has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.groups.duet import Answer, Differently, Duet
from conformance.groups.normal import topic_id
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

Places = Mapping[str, Sequence[int]]


def commit(
    talk: Duet,
    version: int = 9,
    *,
    places: Places | None = None,
    group: str | None = None,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    **said: Any,
) -> list[int]:
    """Commit the same for all places; the error codes, in the order of the places."""
    places = {"one": [0]} if places is None else places
    said = {"committed_offset": 7, **said}
    request = OffsetCommitRequest(
        group_id=talk.group if group is None else group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            TopicToCommit(
                name=topic,
                topic_id=topic_id(topic),
                partitions=[PartitionToCommit(index=index, **said) for index in indexes],
            )
            for topic, indexes in places.items()
        ],
    )
    answer = talk.call(OFFSET_COMMIT, version, request)
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def fetch(
    talk: Duet,
    version: int = 9,
    *,
    places: Places | None = None,
    groups: Sequence[str] = (),
    member: str | None = None,
    epoch: int = -1,
    require_stable: bool = False,
    ours: Differently | None = None,
) -> Answer:
    """What groups, or the one of the conversation, have committed: everywhere, or at places."""
    topics = places and [
        TopicToFetch(name=topic, topic_id=topic_id(topic), partitions=list(indexes))
        for topic, indexes in places.items()
    ]
    topics = [] if places == {} else topics
    groups = groups or [talk.group]
    request = OffsetFetchRequest(
        group_id=groups[0],
        topics=topics,
        groups=[
            GroupToFetch(group_id=group, member_id=member, member_epoch=epoch, topics=topics)
            for group in groups
        ],
        require_stable=require_stable,
    )
    return talk.call(OFFSET_FETCH, version, request, ours=ours)


def fetched_code(answer: Answer) -> int:
    """The error code of the one group that was asked for, from version 8 on."""
    (group,) = answer.groups
    return int(group.error_code)
