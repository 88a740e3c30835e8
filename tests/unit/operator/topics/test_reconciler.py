"""Topics are made, changed and deleted as their resources say, and told about as they are."""

import asyncio

from kafscale.operator.topics.reconciler import SETTLED_SECONDS, SOON_SECONDS
from unit.operator.topics.resources import WEEK
from unit.operator.topics.stage import play, settled


def test_a_resource_becomes_a_topic_and_its_status_says_so():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=2, config={"compression.type": "snappy"})
        assert await stage.reconcile() == SOON_SECONDS
        topic = stage.api.get("orders")
        await stage.lead(7, "orders", 0, 1)
        stage.ends = {("orders", 0): 12, ("orders", 1): 0}
        await asyncio.sleep(SOON_SECONDS)
        assert await stage.reconcile() == SETTLED_SECONDS
        return topic, await stage.status(), stage.told()

    topic, status, told = play(body)
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
    assert told == [("orders", "Created")]


def test_a_change_of_the_resource_reaches_the_topic():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=1, config={"segment.ms": "9"})
        await stage.reconcile()
        await stage.apply(partitions=4, retentionMs=5)
        await stage.reconcile()
        return stage.api.get("orders"), await stage.status(), stage.kube.told

    topic, status, told = play(body)
    assert (topic.partitions, topic.configs) == (4, {"retention.ms": "5", "retention.bytes": "-1"})
    assert status["observedGeneration"] == 2
    assert [(each.reason, each.message) for each in told] == [
        ("Created", "with 1 partitions"),
        ("Grown", "to 4 partitions"),
        ("Altered", "retention.ms=5, segment.ms as by default"),
    ]


def test_what_is_changed_through_kafka_s_api_survives():
    """N-25: partitions and configs, over two rounds and a new operator."""

    async def body(stage):
        await stage.open()
        await stage.apply(partitions=2)
        await stage.reconcile()
        await stage.api.grow("orders", 6)
        await stage.api.set_configs("orders", lambda old: {**old, "retention.ms": "5"})
        await settled()
        before = stage.api.get("orders")
        for _ in range(2):
            await stage.reconcile()
            await asyncio.sleep(SETTLED_SECONDS)
        assert stage.api.get("orders") == before
        return await stage.status()

    status = play(body)
    assert len(status["partitions"]) == 6
    (in_sync, ready) = status["conditions"]
    assert (in_sync["status"], in_sync["reason"]) == ("False", "ChangedElsewhere")
    assert ready["status"] == "True"


def test_a_topic_that_is_there_is_adopted_with_its_records():
    async def body(stage):
        await stage.open()
        made = await stage.api.create("orders", 5, {"segment.ms": "9"}, 1, bytes(16))
        await settled()
        await stage.apply(partitions=2)
        await stage.reconcile()
        return made, stage.api.get("orders"), stage.told(), await stage.ready()

    made, topic, told, ready = play(body)
    assert (topic.id, topic.partitions) == (made.id, 5)
    assert topic.configs == {"segment.ms": "9", "retention.ms": WEEK, "retention.bytes": "-1"}
    assert told == [("orders", "Altered"), ("orders", "Adopted")]
    assert ready == ("True", "Applied")


def test_nothing_is_written_where_nothing_has_changed():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=1)
        await stage.reconcile()
        await stage.lead(1, "orders", 0)
        await asyncio.sleep(SETTLED_SECONDS)
        await stage.reconcile()
        writes = list(stage.kube.writes)
        for _ in range(5):
            await asyncio.sleep(SETTLED_SECONDS)
            assert await stage.reconcile() == SETTLED_SECONDS
        assert stage.kube.writes == writes
        stage.kube.writes.clear()
        await asyncio.gather(*(stage.reconcile() for _ in range(50)))
        assert stage.kube.writes == []

    play(body)


def test_offsets_alone_are_written_every_half_minute_at_the_most():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=1)
        await stage.reconcile()
        await stage.lead(1, "orders", 0)
        await stage.reconcile()
        written = stage.written()
        for second in range(65):
            stage.ends["orders", 0] = second
            await stage.reconcile()
            await asyncio.sleep(1)
        assert stage.written() - written == 2
        return await stage.status()

    assert play(body)["partitions"][0]["logEndOffset"] >= 55


def test_a_thousand_topics_ask_brokers_once():
    async def body(stage):
        await stage.open()
        names = [f"topic-{number}" for number in range(100)]
        for name in names:
            await stage.apply(name, partitions=1)
        await asyncio.gather(*(stage.reconcile(name) for name in names))
        await stage.lead(1, "topic-0", 0)
        await asyncio.sleep(SETTLED_SECONDS)
        before = stage.surveys
        await asyncio.gather(*(stage.reconcile(name) for name in names))
        return stage.surveys - before, len(stage.api.topics)

    assert play(body) == (1, 100)


def test_a_resource_that_comes_as_it_was_before_its_status_is_known_all_the_same():
    """A watch may be late: the same body is handed in twice."""

    async def body(stage):
        await stage.open()
        stale = await stage.apply()
        await stage.reconciler.reconcile(stale)
        written = stage.written()
        await stage.reconciler.reconcile(stale)
        return stage.told(), stage.written() - written

    assert play(body) == ([("orders", "Created")], 0)


def test_who_is_overtaken_looks_again():
    """A client creates the topic in the same moment, before the operator could see it."""

    async def body(stage):
        await stage.open()
        await stage.apply(partitions=2)
        await asyncio.gather(
            stage.api.create("orders", 1, {"segment.ms": "9"}, 1, bytes(16)), stage.reconcile()
        )
        return stage.api.get("orders"), await stage.ready(), stage.told()

    topic, ready, told = play(body)
    assert (topic.id, topic.partitions, topic.configs["segment.ms"]) == (bytes(16), 2, "9")
    assert ready == ("True", "Applied")
    assert [reason for _, reason in told] == ["Grown", "Altered", "Adopted"]
