"""A topic as its owners tell of it, and as far as is known where they do not."""

import pytest

from kafscale.admin.topics.describe import _partition, find_partition
from kafscale.control_plane.messages import PartitionStatus
from kafscale.errors import UnknownTopicError
from kafscale.protocol.messages.metadata import PartitionMetadata

LED = PartitionMetadata(index=2, leader_id=1, leader_epoch=4)


def test_an_owner_tells_how_far_it_has_come():
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
    assert _partition(LED, status, None) == {
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


def test_of_an_owner_that_is_silent_only_the_bounds_are_known():
    found = _partition(LED, None, (10, 60))
    assert found["state"] == "unknown"
    assert (found["startOffset"], found["highWatermark"], found["recordCount"]) == (10, 60, 50)
    assert found["rolledOffset"] is found["endOffset"] is found["sizeBytes"] is None


def test_without_a_leader_nothing_is_known():
    found = _partition(PartitionMetadata(index=0, leader_id=-1), None, None)
    assert (found["leader"], found["state"]) == (None, "leaderless")
    assert found["recordCount"] is found["startOffset"] is found["highWatermark"] is None


def test_a_partition_that_a_topic_does_not_have_is_not_found():
    topic = {"name": "orders", "partitions": [{"partition": 0}, {"partition": 1}]}
    assert find_partition(topic, 1) == {"partition": 1}
    with pytest.raises(UnknownTopicError, match="topic orders has no partition 2, only 0 to 1"):
        find_partition(topic, 2)
