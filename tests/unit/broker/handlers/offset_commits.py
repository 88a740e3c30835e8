"""Commits offsets for tests."""

from typing import Any

from kafscale.metadata.schema.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from unit.broker.handlers.group_members import GROUP
from unit.broker.in_memory_broker import InMemoryBroker

MISSING = Topic(name="missing", id=bytes(15) + b"\1", partitions=2, configs={}, created_ms=0)
"""A topic that does not exist."""


async def commit(
    broker: InMemoryBroker,
    topic: Topic,
    *partitions: PartitionToCommit,
    version: int = OFFSET_COMMIT.version_max,
    **fields: Any,
) -> list[ErrorCode]:
    """Commit offsets of one topic, by name or by id; returns the errors of its partitions."""
    requested = TopicToCommit(name=topic.name, topic_id=topic.id, partitions=list(partitions))
    request = OffsetCommitRequest(**{"group_id": GROUP, "topics": [requested], **fields})
    response = await broker.ask(OFFSET_COMMIT, request, version)
    [committed] = response.topics
    if version >= 10:
        assert committed.topic_id == topic.id
    else:
        assert committed.name == topic.name
    assert [each.index for each in committed.partitions] == [each.index for each in partitions]
    return [ErrorCode.of(each.error_code) for each in committed.partitions]
