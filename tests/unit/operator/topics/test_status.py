"""Tests of a topic's status: its content, and when it is written."""

import asyncio

from msgspec.structs import replace

from doubles import virtual_time
from kafscale.control_plane.messages import Partition
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.operator.kube.api import TOPICS
from kafscale.operator.spec.status import PartitionStatus, TopicStatus, bad, ok
from kafscale.operator.spec.topic import read_topic
from kafscale.operator.topics import status
from kafscale.operator.topics.status import Outcome, StatusWriter
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import ID, NAMESPACE, applied_status, manifest, resource, topic

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
    outcome = Outcome(
        phase="Ready",
        conditions=conditions,
        applied=None,
        topic_id=ID.hex(),
        partitions=[],
        seconds=1,
    )
    return status.build_status(resource(), before, now_ms, outcome)


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


def outcome(condition, phase="Failed"):
    return Outcome(
        phase=phase, conditions=(condition,), applied=None, topic_id="", partitions=[], seconds=1
    )


def run_test(*steps):
    """Report one condition after the other, each for a generation; return what was written."""

    async def scenario(_random):
        kube = MemoryKube(virtual_time.clock_ms)
        writer = StatusWriter(kube, virtual_time.clock_ms)
        resource = read_topic(await kube.apply(manifest()))
        for generation, condition in steps:
            resource = replace(resource, generation=generation)
            before = writer.before(resource)
            await writer.write_status(resource, before, outcome(condition))
            await asyncio.sleep(1)
        body = await kube.get(TOPICS, NAMESPACE, "orders")
        return kube, body["status"]

    return virtual_time.run(scenario, seed=0)


def test_failure_is_recorded_once_per_reason_and_spec():
    failure, other = bad("Ready", "Invalid", "too long"), bad("Ready", "Invalid", "too short")
    kube, status = run_test(
        (1, failure), (1, failure), (1, other), (2, other), (2, ok("Ready", "Yes"))
    )
    assert [each.message for each in kube.events] == ["Invalid: too long", "Invalid: too short"]
    assert all(each.warning and each.reason == "Failed" for each in kube.events)
    assert [write.verb for write in kube.writes] == ["apply", *["status"] * 4]
    assert status["conditions"][0]["reason"] == "Yes"


def test_transient_reasons_are_no_events():
    kube, status = run_test((1, bad("Ready", "ClusterNotReady", "soon")))
    assert kube.events == []
    assert status["conditions"][0]["reason"] == "ClusterNotReady"


def test_only_the_ready_condition_causes_events():
    kube, _ = run_test((1, bad("InSync", "ChangedElsewhere", "by others")))
    assert kube.events == []
