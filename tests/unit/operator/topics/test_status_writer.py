"""What is told about a topic, and that nothing is told twice."""

import asyncio

from msgspec.structs import replace

from kafscale.operator.conditions import bad, ok
from kafscale.operator.kube.kinds import TOPICS
from kafscale.operator.spec.topic import read_topic
from kafscale.operator.topics.status_writer import Bulletin, Finding
from kafscale.testing import virtual_time
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest


def finding(condition, phase="Failed"):
    return Finding(
        phase=phase, conditions=(condition,), applied=None, topic_id="", partitions=[], seconds=1
    )


def play(*steps):
    """Tell of one condition after the other, each for a generation; all that was told."""

    async def scenario(_random):
        kube = MemoryKube(virtual_time.clock_ms)
        bulletin = Bulletin(kube, virtual_time.clock_ms)
        resource = read_topic(await kube.apply(manifest()))
        for generation, condition in steps:
            resource = replace(resource, generation=generation)
            before = bulletin.before(resource)
            await bulletin.tell(resource, before, finding(condition))
            await asyncio.sleep(1)
        body = await kube.get(TOPICS, NAMESPACE, "orders")
        return kube, body["status"]

    return virtual_time.run(scenario, seed=0)


def test_trouble_is_told_when_it_begins_and_again_for_a_new_spec():
    trouble, other = bad("Ready", "Invalid", "too long"), bad("Ready", "Invalid", "too short")
    kube, status = play((1, trouble), (1, trouble), (1, other), (2, other), (2, ok("Ready", "Yes")))
    assert [each.message for each in kube.told] == ["Invalid: too long", "Invalid: too short"]
    assert all(each.warning and each.reason == "Failed" for each in kube.told)
    assert [write.verb for write in kube.writes] == ["apply", *["status"] * 4]
    assert status["conditions"][0]["reason"] == "Yes"


def test_what_passes_by_itself_is_no_event():
    kube, status = play((1, bad("Ready", "ClusterNotReady", "soon")))
    assert kube.told == []
    assert status["conditions"][0]["reason"] == "ClusterNotReady"


def test_only_readiness_is_worth_an_event():
    kube, _ = play((1, bad("InSync", "ChangedElsewhere", "by others")))
    assert kube.told == []
