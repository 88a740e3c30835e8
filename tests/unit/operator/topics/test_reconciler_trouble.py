"""What cannot be done for a topic is told, once, and changes nothing."""

import asyncio

import pytest

from kafscale.errors import KubeError
from kafscale.metadata.cluster.restore_marker import (
    complete_restore,
    find_pending_restore,
    mark_restored,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.operator.kube.kinds import TOPICS
from kafscale.operator.topics.reconciler import SETTLED_SECONDS, SOON_SECONDS
from unit.operator.topics.resources import NAMESPACE, WEEK
from unit.operator.topics.stage import play, settled


def test_a_cluster_that_is_missing_is_waited_for():
    async def body(stage):
        await stage.apply()
        assert await stage.reconcile() == SETTLED_SECONDS
        missing = await stage.ready(), (await stage.status())["phase"]
        await stage.make_cluster()
        assert await stage.reconcile() == SOON_SECONDS
        waiting = await stage.ready(), (await stage.status())["phase"]
        await stage.open()
        await stage.reconcile()
        return missing, waiting, await stage.ready(), stage.told()

    missing, waiting, ready, told = play(body)
    assert missing == (("False", "ClusterNotFound"), "Pending")
    assert waiting == (("False", "ClusterNotReady"), "Pending")
    assert ready == ("True", "Applied")
    assert told == [("orders", "Failed"), ("orders", "Created")]


def test_restored_metadata_are_for_brokers_first():
    async def body(stage):
        await stage.open()
        await mark_restored(stage.store, snapshot="s", taken_at_ms=1, restored_at_ms=2)
        await stage.apply()
        assert await stage.reconcile() == SOON_SECONDS
        before = await stage.ready(), stage.api.get("orders")
        assert await complete_restore(stage.store, await find_pending_restore(stage.store))
        await stage.reconcile()
        return before, await stage.ready()

    before, after = play(body)
    assert before == (("Unknown", "StoreUnavailable"), None)
    assert after == ("True", "Applied")


def test_a_resource_that_is_wrong_says_so_once_and_changes_nothing():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=2)
        await stage.reconcile()
        await stage.apply(partitions=3, config={"segment.ms": "never"})
        for _ in range(3):
            await stage.reconcile()
            await asyncio.sleep(SETTLED_SECONDS)
        return stage.api.get("orders").partitions, await stage.status(), stage.kube.told

    partitions, status, told = play(body)
    assert partitions == 2
    assert status["phase"] == "Failed"
    assert len(status["partitions"]) == 2
    assert status["applied"]["partitions"] == 2
    (ready,) = status["conditions"]
    assert ready["reason"] == "InvalidConfig"
    assert "Not a number of type LONG" in ready["message"]
    assert [each.reason for each in told] == ["Created", "Failed"]
    assert told[1].warning
    assert told[1].message.startswith("InvalidConfig: Invalid value never")


def test_a_name_like_another_s_is_refused():
    async def body(stage):
        await stage.open()
        await stage.api.create("a.b", 1, {}, 1, bytes(16))
        await settled()
        await stage.apply(topicName="a_b")
        await stage.reconcile()
        return await stage.ready(), set(stage.api.topics)

    assert play(body) == (("False", "InvalidName"), {"a.b"})


def test_the_older_of_two_resources_has_the_topic():
    async def body(stage):
        await stage.open()
        await stage.apply("first", topicName="orders", partitions=1)
        await stage.reconcile("first")
        await asyncio.sleep(2)
        await stage.apply("second", topicName="orders", partitions=9)
        await stage.reconcile("second")
        partitions = stage.api.get("orders").partitions
        refused = await stage.ready("second"), await stage.status("second")
        assert await stage.let_go("second")
        assert stage.api.get("orders")
        # Once the first is gone, its topic with it, the second has its turn.
        assert await stage.let_go("first")
        await stage.kube.delete(TOPICS, NAMESPACE, "first")
        await stage.api.finish_deletion("orders", stage.api.deletions["orders"].id)
        await asyncio.sleep(SETTLED_SECONDS)
        await stage.reconcile("second")
        return partitions, refused, stage.api.get("orders").partitions

    partitions, (ready, status), at_last = play(body)
    assert partitions == 1
    assert ready == ("False", "Conflict")
    assert "topicId" not in status
    assert "partitions" not in status
    assert at_last == 9


def test_two_resources_made_in_one_moment_do_not_both_act():
    """The first round of both sees a list from before either was there."""

    async def body(stage):
        await stage.open()
        await stage.apply("other")
        await stage.reconcile("other")
        await stage.apply("alpha", topicName="orders", partitions=1)
        await stage.apply("beta", topicName="orders", partitions=9)
        await stage.reconcile("beta")
        await stage.reconcile("alpha")
        return stage.api.get("orders").partitions, await stage.ready("beta")

    assert play(body) == (1, ("False", "Conflict"))


def test_who_adopts_a_topic_has_made_sure_too():
    """Nothing would be changed, but the topic would go with the wrong resource."""

    async def body(stage):
        await stage.open()
        await stage.apply("other")
        await stage.reconcile("other")
        configs = {"retention.ms": WEEK, "retention.bytes": "-1"}
        await stage.api.create("orders", 3, configs, 1, bytes(16))
        await settled()
        await stage.apply("alpha", topicName="orders")
        await stage.apply("beta", topicName="orders")
        await stage.reconcile("beta")
        return await stage.ready("beta")

    assert play(body) == ("False", "Conflict")


def test_a_resource_that_was_overtaken_deletes_nothing():
    """Made in the same second, the first by name has the topic, though it came later."""

    async def body(stage):
        await stage.open()
        await stage.apply("beta", topicName="orders")
        await stage.reconcile("beta")
        await stage.apply("alpha", topicName="orders")
        await stage.reconcile("alpha")
        assert (await stage.status("beta"))["topicId"] == (await stage.status("alpha"))["topicId"]
        assert await stage.let_go("beta")
        return set(stage.api.topics), await stage.ready("alpha")

    assert play(body) == ({"orders"}, ("True", "Applied"))


def test_what_cannot_be_read_is_left_alone_and_may_go():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions="many")
        assert await stage.reconcile() == SETTLED_SECONDS
        return await stage.let_go(), stage.written(), set(stage.api.topics)

    assert play(body) == (True, 0, set())


def test_an_old_topic_of_the_same_name_is_waited_for():
    async def body(stage):
        await stage.open()
        old = await stage.api.create("orders", 1, {}, 1, bytes(16))
        await stage.api.delete("orders")
        await settled()
        await stage.apply()
        await stage.reconcile()
        waiting = await stage.ready()
        await stage.api.finish_deletion("orders", old.id)
        await settled()
        await stage.reconcile()
        return waiting, await stage.ready(), stage.told()

    waiting, ready, told = play(body)
    assert waiting == ("False", "DeletionUnderWay")
    assert ready == ("True", "Applied")
    assert told == [("orders", "Created")]


def test_a_store_that_does_not_answer_leaves_the_status_as_it_was_known():
    async def body(stage):
        await stage.open()
        await stage.apply(partitions=2)
        await stage.reconcile()
        before = await stage.status()
        await stage.store.close()
        await settled()
        assert await stage.reconcile() == SOON_SECONDS
        return before, await stage.status(), stage.told()

    before, after, told = play(body)
    assert {**after, "conditions": None} == {**before, "conditions": None}
    (ready,) = after["conditions"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "StoreUnavailable")
    assert told == [("orders", "Created"), ("orders", "Failed")]


def test_a_record_that_cannot_be_read_is_told_of():
    """The view has no such topic, the store has one: made twice, and refused twice."""

    async def body(stage):
        await stage.open()
        await stage.store.commit([], [Put(keys.topic_config("orders"), b"\xff")])
        await settled()
        await stage.apply()
        await stage.reconcile()
        return await stage.ready()

    assert play(body) == ("False", "Refused")


def test_trouble_with_the_api_server_is_raised():
    async def body(stage):
        await stage.open()
        resource = await stage.apply()
        stage.kube.failure = KubeError("no answer")
        with pytest.raises(KubeError):
            await stage.reconciler.reconcile(resource)
        assert not stage.api.topics
        return stage.kube.told

    assert play(body) == []
