"""Tests of the topic reconciler: create, change, adopt and report topics."""

import asyncio

from kafscale.operator.topics.reconciler import RECHECK_SECONDS, RESYNC_SECONDS
from unit.operator.topics.fixture import run_test, wait_for_watches
from unit.operator.topics.resources import WEEK


def test_topic_is_created_and_its_status_reported():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=2, config={"compression.type": "snappy"})
        assert await fixture.reconcile() == RECHECK_SECONDS
        topic = fixture.api.get("orders")
        await fixture.assign(7, "orders", 0, 1)
        fixture.log_end_offsets = {("orders", 0): 12, ("orders", 1): 0}
        await asyncio.sleep(RECHECK_SECONDS)
        assert await fixture.reconcile() == RESYNC_SECONDS
        return topic, await fixture.status(), fixture.events()

    topic, status, events = run_test(body)
    configs = {"compression.type": "snappy", "retention.ms": WEEK, "retention.bytes": "-1"}
    assert (topic.partitions, topic.configs, topic.namespace) == (2, configs, "objects")
    assert status["phase"] == "Ready"
    assert status["observedGeneration"] == 1
    assert status["topicId"] == topic.id.hex()
    assert status["applied"] == {"partitions": 2, "config": configs}
    assert status["partitions"] == [
        {"id": 0, "leader": "7", "logEndOffset": 12},
        {"id": 1, "leader": "7", "logEndOffset": 0},
    ]
    assert [each["type"] for each in status["conditions"]] == ["InSync", "Ready"]
    assert all(each["status"] == "True" for each in status["conditions"])
    assert events == [("orders", "Created")]


def test_changes_of_the_resource_are_applied():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=1, config={"segment.ms": "9"})
        await fixture.reconcile()
        await fixture.apply(partitions=4, retentionMs=5)
        await fixture.reconcile()
        return fixture.api.get("orders"), await fixture.status(), fixture.kube.events

    topic, status, events = run_test(body)
    assert (topic.partitions, topic.configs) == (4, {"retention.ms": "5", "retention.bytes": "-1"})
    assert status["observedGeneration"] == 2
    assert [(each.reason, each.message) for each in events] == [
        ("Created", "with 1 partitions"),
        ("Grown", "to 4 partitions"),
        ("Altered", "retention.ms=5, segment.ms reset to its default"),
    ]


def test_changes_through_kafkas_api_are_kept():
    """N-25: partitions and configs, over two rounds and a new operator."""

    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=2)
        await fixture.reconcile()
        await fixture.api.grow("orders", 6)
        await fixture.api.set_configs("orders", lambda old: {**old, "retention.ms": "5"})
        await wait_for_watches()
        before = fixture.api.get("orders")
        for _ in range(2):
            await fixture.reconcile()
            await asyncio.sleep(RESYNC_SECONDS)
        assert fixture.api.get("orders") == before
        return await fixture.status()

    status = run_test(body)
    assert len(status["partitions"]) == 6
    (in_sync, ready) = status["conditions"]
    assert (in_sync["status"], in_sync["reason"]) == ("False", "ChangedElsewhere")
    assert ready["status"] == "True"


def test_existing_topic_is_adopted():
    async def body(fixture):
        await fixture.open()
        created = await fixture.api.create("orders", 5, {"segment.ms": "9"}, 1, bytes(16))
        await wait_for_watches()
        await fixture.apply(partitions=2)
        await fixture.reconcile()
        return created, fixture.api.get("orders"), fixture.events(), await fixture.ready()

    created, topic, events, ready = run_test(body)
    assert (topic.id, topic.partitions) == (created.id, 5)
    assert topic.configs == {"segment.ms": "9", "retention.ms": WEEK, "retention.bytes": "-1"}
    assert events == [("orders", "Altered"), ("orders", "Adopted")]
    assert ready == ("True", "Applied")


def test_unchanged_status_is_not_written():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=1)
        await fixture.reconcile()
        await fixture.assign(1, "orders", 0)
        await asyncio.sleep(RESYNC_SECONDS)
        await fixture.reconcile()
        writes = list(fixture.kube.writes)
        for _ in range(5):
            await asyncio.sleep(RESYNC_SECONDS)
            assert await fixture.reconcile() == RESYNC_SECONDS
        assert fixture.kube.writes == writes
        fixture.kube.writes.clear()
        await asyncio.gather(*(fixture.reconcile() for _ in range(50)))
        assert fixture.kube.writes == []

    run_test(body)


def test_offsets_alone_are_written_at_most_every_half_minute():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=1)
        await fixture.reconcile()
        await fixture.assign(1, "orders", 0)
        await fixture.reconcile()
        status_writes = fixture.status_writes()
        for second in range(65):
            fixture.log_end_offsets["orders", 0] = second
            await fixture.reconcile()
            await asyncio.sleep(1)
        assert fixture.status_writes() - status_writes == 2
        return await fixture.status()

    assert run_test(body)["partitions"][0]["logEndOffset"] >= 55


def test_many_topics_share_one_status_request():
    async def body(fixture):
        await fixture.open()
        names = [f"topic-{number}" for number in range(100)]
        for name in names:
            await fixture.apply(name, partitions=1)
        await asyncio.gather(*(fixture.reconcile(name) for name in names))
        await fixture.assign(1, "topic-0", 0)
        await asyncio.sleep(RESYNC_SECONDS)
        before = fixture.status_requests
        await asyncio.gather(*(fixture.reconcile(name) for name in names))
        return fixture.status_requests - before, len(fixture.api.topics)

    assert run_test(body) == (1, 100)


def test_stale_resource_is_not_reconciled_twice():
    """A watch may lag: the same body is passed twice."""

    async def body(fixture):
        await fixture.open()
        stale = await fixture.apply()
        await fixture.reconciler.reconcile(stale)
        status_writes = fixture.status_writes()
        await fixture.reconciler.reconcile(stale)
        return fixture.events(), fixture.status_writes() - status_writes

    assert run_test(body) == ([("orders", "Created")], 0)


def test_concurrent_creation_is_adopted():
    """A client creates the topic at the same time, before the operator could see it."""

    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=2)
        await asyncio.gather(
            fixture.api.create("orders", 1, {"segment.ms": "9"}, 1, bytes(16)), fixture.reconcile()
        )
        return fixture.api.get("orders"), await fixture.ready(), fixture.events()

    topic, ready, events = run_test(body)
    assert (topic.id, topic.partitions, topic.configs["segment.ms"]) == (bytes(16), 2, "9")
    assert ready == ("True", "Applied")
    assert [reason for _, reason in events] == ["Grown", "Altered", "Adopted"]
