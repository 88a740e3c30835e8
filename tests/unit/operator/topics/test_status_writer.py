"""Tests of statuses and events: nothing is recorded twice."""

import asyncio

from msgspec.structs import replace

from doubles import virtual_time
from kafscale.operator.conditions import bad, ok
from kafscale.operator.kube.api import TOPICS
from kafscale.operator.spec.topic import read_topic
from kafscale.operator.topics.status_writer import Outcome, StatusWriter
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest


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
