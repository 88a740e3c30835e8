"""Commits, as tests make them: offsets in, and offsets out."""

from typing import Any

from kafscale.metadata.schema.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from unit.broker.handlers.membership import GROUP
from unit.broker.handlers.serving import Served

MISSING = Topic(name="missing", id=bytes(15) + b"\1", partitions=2, configs={}, created_ms=0)
"""A topic that no broker has."""


async def commit(
    broker: Served,
    topic: Topic,
    *partitions: PartitionToCommit,
    version: int = OFFSET_COMMIT.version_max,
    **fields: Any,
) -> list[ErrorCode]:
    """Commit offsets of one topic, by its name or by its id: the errors of its partitions."""
    asked = TopicToCommit(name=topic.name, topic_id=topic.id, partitions=list(partitions))
    request = OffsetCommitRequest(**{"group_id": GROUP, "topics": [asked], **fields})
    response = await broker.ask(OFFSET_COMMIT, request, version)
    [told] = response.topics
    if version >= 10:
        assert told.topic_id == topic.id
    else:
        assert told.name == topic.name
    assert [each.index for each in told.partitions] == [each.index for each in partitions]
    return [ErrorCode.of(each.error_code) for each in told.partitions]
