"""What members of consumer groups say, in few words; in the newest version, unless another is."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from conformance.groups.codes import Code
from conformance.groups.duet import Answer, Duet
from conformance.groups.normal import topic_id
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    Assignment,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

Owned = Mapping[str, Sequence[int]]


def beat(talk: Duet, version: int = 1, **said: Any) -> Answer:
    """One heartbeat, which says no more than it is told to."""
    return talk.call(CONSUMER_GROUP_HEARTBEAT, version, beat_request(talk, **said))


def beat_request(
    talk: Duet,
    *,
    member: str = "a",
    epoch: int,
    owned: Owned | None = None,
    group: str | None = None,
    **said: Any,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=talk.group if group is None else group,
        member_id=member,
        member_epoch=epoch,
        owned_partitions=None if owned is None else _partitions(owned),
        **said,
    )


def enter(
    talk: Duet, version: int = 1, *, names: Sequence[str] | None = ("three",), **said: Any
) -> Answer:
    """Join; everything may be said otherwise."""
    said = {"epoch": 0, "owned": {}, "rebalance_timeout_ms": 20_000, **said}
    topics = None if names is None else list(names)
    return beat(talk, version, subscribed_topic_names=topics, **said)


def consumer(talk: Duet, **said: Any) -> str:
    """A member that has joined."""
    answer = enter(talk, **said)
    assert answer.error_code == Code.NONE
    return str(answer.member_id)


def assigned(answer: Answer) -> dict[str, list[int]] | None:
    """What an answer says that a member may read, by the names of topics."""
    if answer.assignment is None:
        return None
    return {
        each.topic_id.decode().rstrip("."): each.partitions
        for each in answer.assignment.assigned_partitions
    }


def having(answer: Answer, owned: Owned) -> Answer:
    """The same answer, but with another assignment."""
    return replace(answer, assignment=Assignment(_partitions(owned)))


def _partitions(owned: Owned) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id(topic), list(each)) for topic, each in owned.items()]


def describe_consumers(talk: Duet, version: int = 1, *groups: str, **said: Any) -> Answer:
    request = ConsumerGroupDescribeRequest(list(groups) or [talk.group], **said)
    return talk.call(CONSUMER_GROUP_DESCRIBE, version, request)
