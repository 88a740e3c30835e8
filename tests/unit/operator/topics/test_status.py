"""The status of a topic: what is in it, and when it is written."""

from msgspec.structs import replace

from kafscale.control_plane.partition import Partition
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.operator.conditions import bad, ok
from kafscale.operator.spec.status import PartitionStatus, TopicStatus
from kafscale.operator.topics import status
from unit.operator.topics.resources import ID, ours, resource, topic

LEADERS = {0: (4, 1), 1: (NO_BROKER, -1), 2: (5, 1)}
BEFORE = replace(
    ours(), partitions=[PartitionStatus(id=0, leader="3", log_end_offset=7), PartitionStatus(id=1)]
)


def partitions(now, before=BEFORE, **ends):
    told = {Partition("orders", int(number[1:])): end for number, end in ends.items()}
    found = status.partitions(now, lambda _, number: LEADERS[number], told, before)
    return [(each.id, each.leader, each.log_end_offset) for each in found]


def test_partitions_have_leaders_and_ends_as_far_as_they_are_known():
    assert partitions(topic(3), p0=9, p2=0) == [(0, "4", 9), (1, "", None), (2, "5", 0)]


def test_an_end_that_nobody_tells_stays_what_it_was_if_the_topic_is_the_same():
    assert partitions(topic(1)) == [(0, "4", 7)]
    assert partitions(topic(1, id_=ID[::-1])) == [(0, "4", None)]


def test_a_status_that_makes_no_sense_is_none():
    assert status.read({"partitions": "many"}) == TopicStatus()
    assert status.read({"kopf": {"progress": {}}, "phase": "Ready"}) == TopicStatus(phase="Ready")


def assembled(before, now_ms, *conditions):
    return status.assembled(
        resource(),
        before,
        now_ms,
        phase="Ready",
        conditions=conditions,
        applied=None,
        topic_id=ID.hex(),
        partitions=[],
    )


def test_a_condition_is_as_old_as_its_status():
    first = assembled(TopicStatus(), 0, ok("Ready", "Applied"))
    second = assembled(first, 60_000, ok("Ready", "Another", "because"))
    third = assembled(second, 120_000, bad("Ready", "Broken", "because"))
    times = [each.conditions[0].last_transition_time for each in (first, second, third)]
    assert times == ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:02:00Z"]
    assert status.reason(third, "Ready") == "Broken"
    assert status.reason(third, "InSync") == ""


def test_offsets_alone_wait_for_their_time_and_nothing_else_does():
    moved = replace(BEFORE, partitions=[replace(BEFORE.partitions[0], log_end_offset=8)])
    before = replace(BEFORE, partitions=BEFORE.partitions[:1])
    assert not status.is_worth_writing(before, before, None)
    assert status.is_worth_writing(before, moved, None)
    assert not status.is_worth_writing(before, moved, status.OFFSETS_MS - 1)
    assert status.is_worth_writing(before, moved, status.OFFSETS_MS)
    led = replace(before, partitions=[replace(before.partitions[0], leader="9")])
    assert status.is_worth_writing(before, led, 0)
    assert status.is_worth_writing(before, replace(before, phase="Failed"), 0)
