"""Looks up the partition that a client means, and the leader that it should have asked.

Invariants: a partition that another broker leads, or that this broker cannot prove to own at the
moment, is NOT_LEADER_OR_FOLLOWER; a partition that does not exist is unknown. Internal topics can
be read only: whatever else a client wants of one is INVALID_TOPIC_EXCEPTION, as in Kafka.
"""

from collections.abc import Iterable
from typing import Final, NoReturn

from kafscale.broker.group_coordinator.shard_log import ShardLog
from kafscale.broker.network.advertised import Node, node
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import (
    FencedLeaderEpochError,
    InvalidTopicError,
    NotOwnerError,
    UnknownLeaderEpochError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode
from kafscale.storage.log.partition_log import PartitionLog

ReadableLog = PartitionLog | ShardLog
"""What clients can read: the log of a partition, or what stands for one of an internal topic."""

NO_LEADER_EPOCH: Final = -1
"""Sent by clients that do not know the leader epoch."""

WRONG_LEADER_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors of clients that asked the wrong broker; responses then name the leader (KIP-951)."""


def find_partition(broker: Services, name: str, topic_id: bytes, index: int) -> PartitionLog:
    """The log of a partition; an empty name means that the client uses the topic id (KIP-516)."""
    logs = broker.storage.logs
    log = logs.get(name, index) if name else logs.find_by_id(topic_id, index)
    if log is None:
        _raise_missing(broker, name, topic_id, index)
    _check_lease(broker)
    return log


def find_by_name(broker: Services, name: str, index: int) -> PartitionLog:
    """The log of a partition, for APIs that identify topics by name only."""
    if not name:
        raise UnknownTopicError
    return find_partition(broker, name, b"", index)


def find_readable(broker: Services, name: str, topic_id: bytes, index: int) -> ReadableLog:
    """Like `find_partition`, for clients that only read: it finds internal topics as well."""
    logs = broker.storage.logs
    log = logs.get(name, index) if name else logs.find_by_id(topic_id, index)
    if log is None:
        topic = broker.topic_store.find(name) if name else broker.topic_store.find_by_id(topic_id)
        is_internal = topic is not None and broker.topic_store.is_internal(topic.name)
        if topic is None or not is_internal or not 0 <= index < topic.partitions:
            _raise_missing(broker, name, topic_id, index)
        _check_lease(broker)
        return broker.groups.logs.find(index)
    _check_lease(broker)
    return log


def find_readable_by_name(broker: Services, name: str, index: int) -> ReadableLog:
    """Like `find_by_name`, for clients that only read."""
    if not name:
        raise UnknownTopicError("the topic name is empty")
    return find_readable(broker, name, b"", index)


def _check_lease(broker: Services) -> None:
    if not broker.registration.lease_is_valid:
        raise NotOwnerError("this broker waits for the metadata store to confirm its lease")


def _raise_missing(broker: Services, name: str, topic_id: bytes, index: int) -> NoReturn:
    topic = broker.topic_store.find(name) if name else broker.topic_store.find_by_id(topic_id)
    if topic is None and not name:
        raise UnknownTopicIdError
    if topic is None or not 0 <= index < topic.partitions:
        raise UnknownTopicError
    if broker.topic_store.is_internal(topic.name):
        raise InvalidTopicError(f"topic {topic.name!r} is internal and can only be read")
    raise NotOwnerError(f"this broker does not lead {topic.name}/{index}")


def check_leader_epoch(log: ReadableLog, leader_epoch: int) -> None:
    """Raise unless a client knows the current leader epoch, or does not send one (KIP-320)."""
    if leader_epoch in {NO_LEADER_EPOCH, log.leader_epoch}:
        return
    current = f"the leader epoch of {log.topic}/{log.partition} is {log.leader_epoch}"
    if leader_epoch < log.leader_epoch:
        raise FencedLeaderEpochError(f"{current}; the request has the older {leader_epoch}")
    raise UnknownLeaderEpochError(f"{current}; the request has the newer {leader_epoch}")


def current_leader(
    context: RequestContext, name: str, topic_id: bytes, index: int
) -> tuple[int, int] | None:
    """The leader of a partition and its epoch; None if it is this broker or unknown."""
    topic_store = context.broker.topic_store
    topic = topic_store.find(name) if name else topic_store.find_by_id(topic_id)
    if topic is None:
        return None
    leader_id, leader_epoch = context.broker.cluster.leader(topic.name, index)
    if leader_id in {NO_BROKER, context.broker.node_id}:
        return None
    return leader_id, leader_epoch


def leader_nodes(context: RequestContext, leader_ids: Iterable[int]) -> list[Node]:
    """The advertised addresses of these brokers."""
    return [leader for broker_id in sorted(set(leader_ids)) if (leader := node(context, broker_id))]
