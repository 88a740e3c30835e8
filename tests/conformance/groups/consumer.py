"""Requests of consumer group members, in short form; in the newest version by default."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from conformance.groups.codes import Code
from conformance.groups.comparison import ComparisonClient, Response
from conformance.groups.normalization import topic_id
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


def consumer_heartbeat(client: ComparisonClient, version: int = 1, **fields: Any) -> Response:
    """One heartbeat with exactly these fields."""
    return client.call(
        CONSUMER_GROUP_HEARTBEAT, version, consumer_heartbeat_request(client, **fields)
    )


def consumer_heartbeat_request(
    client: ComparisonClient,
    *,
    member: str = "a",
    epoch: int,
    owned: Owned | None = None,
    group: str | None = None,
    **fields: Any,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=client.group if group is None else group,
        member_id=member,
        member_epoch=epoch,
        owned_partitions=None if owned is None else _partitions(owned),
        **fields,
    )


def join_consumer(
    client: ComparisonClient,
    version: int = 1,
    *,
    names: Sequence[str] | None = ("three",),
    **fields: Any,
) -> Response:
    """Join; every field can be overridden."""
    fields = {"epoch": 0, "owned": {}, "rebalance_timeout_ms": 20_000, **fields}
    topics = None if names is None else list(names)
    return consumer_heartbeat(client, version, subscribed_topic_names=topics, **fields)


def joined_consumer(client: ComparisonClient, **fields: Any) -> str:
    """A member that has joined."""
    response = join_consumer(client, **fields)
    assert response.error_code == Code.NONE
    return str(response.member_id)


def assigned(response: Response) -> dict[str, list[int]] | None:
    """The assignment of a response, by topic name."""
    if response.assignment is None:
        return None
    return {
        each.topic_id.decode().rstrip("."): each.partitions
        for each in response.assignment.assigned_partitions
    }


def with_assignment(response: Response, owned: Owned) -> Response:
    """The same response with another assignment."""
    return replace(response, assignment=Assignment(_partitions(owned)))


def _partitions(owned: Owned) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id(topic), list(each)) for topic, each in owned.items()]


def describe_consumers(
    client: ComparisonClient, version: int = 1, *groups: str, **fields: Any
) -> Response:
    request = ConsumerGroupDescribeRequest(list(groups) or [client.group], **fields)
    return client.call(CONSUMER_GROUP_DESCRIBE, version, request)
