"""Partitions with and without a response of their owner."""

import msgspec
import pytest

from kafscale.admin.topics.describe import PartitionDescription, TopicDescription, _partition
from kafscale.control_plane.messages import PartitionStatus
from kafscale.errors import UnknownTopicError
from kafscale.protocol.messages.metadata import PartitionMetadata

WITH_LEADER = PartitionMetadata(index=2, leader_id=1, leader_epoch=4)


def test_owner_reports_all_offsets():
    status = PartitionStatus(
        topic="orders",
        partition=2,
        state="online",
        moving_to="3",
        log_start_offset=10,
        rolled_offset=50,
        high_watermark=60,
        log_end_offset=65,
        size_bytes=1000,
    )
    assert msgspec.to_builtins(_partition(WITH_LEADER, status, None)) == {
        "partition": 2,
        "leader": 1,
        "leaderEpoch": 4,
        "state": "online",
        "movingTo": 3,
        "startOffset": 10,
        "rolledOffset": 50,
        "highWatermark": 60,
        "endOffset": 65,
        "recordCount": 50,
        "sizeBytes": 1000,
    }


def test_without_owner_only_start_and_end_are_known():
    described = _partition(WITH_LEADER, None, (10, 60))
    assert described.state == "unknown"
    assert (described.start_offset, described.high_watermark, described.record_count) == (
        10,
        60,
        50,
    )
    assert described.rolled_offset is described.end_offset is described.size_bytes is None


def test_leaderless_partition_has_no_offsets():
    described = _partition(PartitionMetadata(index=0, leader_id=-1), None, None)
    assert (described.leader, described.state) == (None, "leaderless")
    assert described.record_count is described.start_offset is described.high_watermark is None


def test_find_partition_rejects_unknown_indexes():
    partitions = [
        PartitionDescription(
            partition=index,
            leader=1,
            leader_epoch=0,
            state="online",
            start_offset=0,
            high_watermark=0,
            record_count=0,
        )
        for index in range(2)
    ]
    topic = TopicDescription("orders", "00", False, 2, 0, 0, 0, partitions)
    assert topic.find_partition(1) is partitions[1]
    with pytest.raises(UnknownTopicError, match="topic orders has no partition 2, only 0 to 1"):
        topic.find_partition(2)
