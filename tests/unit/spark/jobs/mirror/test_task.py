"""A pass of the mirror ends where the source ended when it started, while the source is written."""

from collections import deque

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, TopicPartition

from kafscale.spark.jobs.mirror.task import MirrorItem, PartitionCopy, mirror_partitions

TOPIC = "orders"


class Message:
    """A record, or with `code` an event, of the source."""

    def __init__(self, partition, offset, code=None):
        self._partition = partition
        self._offset = offset
        self._code = code

    def topic(self):
        return TOPIC

    def partition(self):
        return self._partition

    def offset(self):
        return self._offset

    def error(self):
        return None if self._code is None else KafkaError(self._code)

    def headers(self):
        return []

    def key(self):
        return None

    def value(self):
        return b"%d/%d" % (self._partition, self._offset)

    def timestamp(self):
        return TIMESTAMP_CREATE_TIME, 0

    def __len__(self):
        return 1


def end(partition, offset):
    """The event that the consumer is at the end of a partition."""
    return Message(partition, offset, KafkaError._PARTITION_EOF)


class ScriptedCluster:
    """A source that delivers chunks of messages, or an empty target; with its own clients."""

    bootstrap = "scripted:9092"

    def __init__(self, ends=(0, 0), *chunks):
        self.produced = []
        self._ends = ends
        self._chunks = deque(chunks)

    def consumer(self, *_arguments, **_settings):
        return self

    def producer(self, _codec):
        return self

    def get_watermark_offsets(self, topic_partition, timeout):
        assert timeout
        return 0, self._ends[topic_partition.partition]

    def committed(self, topic_partitions, timeout):
        assert timeout
        return [TopicPartition(each.topic, each.partition) for each in topic_partitions]

    def consume(self, *_limits):
        return self._chunks.popleft()

    def produce(self, _topic, *, value, **_fields):
        self.produced.append(value)

    def assign(self, _topic_partitions):
        pass

    def commit(self, **_offsets):
        pass

    def close(self):
        pass

    def poll(self, _timeout):
        pass

    def flush(self, _timeout):
        pass

    def purge(self, **_which):
        pass


@pytest.mark.parametrize(
    ("chunks", "positions"),
    [
        # The end of the source is a marker, behind which another transaction was committed.
        ([[Message(0, 0), Message(0, 2), Message(0, 3), end(0, 5), end(1, 1)]], (2, 1)),
        ([[Message(0, 0), end(0, 5), end(1, 1)]], (2, 1)),
        ([[Message(0, 0), Message(0, 2)], [end(1, 1)]], (2, 1)),
        # Partition 0 is done, but is written while the pass still reads partition 1.
        ([[Message(0, 0), Message(0, 1)], [Message(0, 2), end(0, 3)], [end(1, 1)]], (2, 1)),
        # A transaction is open: what it may have written is not behind the pass.
        ([[Message(0, 0), end(0, 1)], [Message(0, 1), end(0, 3)], [end(1, 0)]], (1, 0)),
    ],
)
def test_position_is_not_moved_beyond_what_was_copied(chunks, positions):
    source, target = ScriptedCluster((2, 1), *chunks), ScriptedCluster()
    copies = tuple(PartitionCopy(TOPIC, TOPIC, each) for each in (0, 1))
    results = mirror_partitions(MirrorItem(source, target, "source", "target", copies, "none"))
    assert tuple(each.position for each in results) == positions
    offsets = [int(value.removeprefix(b"0/")) for value in target.produced]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) <= positions[0]
