"""Tests of a topic's status: its content, and when it is written."""

from msgspec.structs import replace

from kafscale.control_plane.messages import Partition
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.operator.conditions import bad, ok
from kafscale.operator.spec.status import PartitionStatus, TopicStatus
from kafscale.operator.topics import status
from unit.operator.topics.resources import ID, applied_status, resource, topic

LEADERS = {0: (4, 1), 1: (NO_BROKER, -1), 2: (5, 1)}
BEFORE = replace(
    applied_status(),
    partitions=[PartitionStatus(id=0, leader="3", log_end_offset=7), PartitionStatus(id=1)],
)


def partitions(now, before=BEFORE, **log_end_offsets):
    offsets = {Partition("orders", int(number[1:])): end for number, end in log_end_offsets.items()}
    reported = status.partitions(now, lambda _, number: LEADERS[number], offsets, before)
    return [(each.id, each.leader, each.log_end_offset) for each in reported]


def test_partitions_have_known_leaders_and_offsets():
    assert partitions(topic(3), p0=9, p2=0) == [(0, "4", 9), (1, "", None), (2, "5", 0)]


def test_unknown_offset_keeps_its_last_value_for_the_same_topic():
    assert partitions(topic(1)) == [(0, "4", 7)]
    assert partitions(topic(1, id_=ID[::-1])) == [(0, "4", None)]


def test_invalid_status_is_read_as_empty():
    assert status.read({"partitions": "many"}) == TopicStatus()
    assert status.read({"kopf": {"progress": {}}, "phase": "Ready"}) == TopicStatus(phase="Ready")


def build_status(before, now_ms, *conditions):
    return status.build_status(
        resource(),
        before,
        now_ms,
        phase="Ready",
        conditions=conditions,
        applied=None,
        topic_id=ID.hex(),
        partitions=[],
    )


def test_transition_time_changes_with_the_status_only():
    first = build_status(TopicStatus(), 0, ok("Ready", "Applied"))
    second = build_status(first, 60_000, ok("Ready", "Another", "because"))
    third = build_status(second, 120_000, bad("Ready", "Broken", "because"))
    times = [each.conditions[0].last_transition_time for each in (first, second, third)]
    assert times == ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:02:00Z"]
    assert status.reason(third, "Ready") == "Broken"
    assert status.reason(third, "InSync") == ""


def test_only_changes_of_offsets_are_delayed():
    moved_offset = replace(BEFORE, partitions=[replace(BEFORE.partitions[0], log_end_offset=8)])
    before = replace(BEFORE, partitions=BEFORE.partitions[:1])
    assert not status.should_write(before, before, None)
    assert status.should_write(before, moved_offset, None)
    assert not status.should_write(before, moved_offset, status.OFFSETS_MS - 1)
    assert status.should_write(before, moved_offset, status.OFFSETS_MS)
    moved_leader = replace(before, partitions=[replace(before.partitions[0], leader="9")])
    assert status.should_write(before, moved_leader, 0)
    assert status.should_write(before, replace(before, phase="Failed"), 0)
