"""Tests of failures: they are reported once, and change nothing."""

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
from kafscale.operator.kube.api import TOPICS
from kafscale.operator.topics.reconciler import RECHECK_SECONDS, RESYNC_SECONDS
from unit.metadata.finished_deletion import finish_deletion
from unit.operator.topics.fixture import run_test, wait_for_watches
from unit.operator.topics.resources import NAMESPACE, WEEK


def test_missing_cluster_is_reported_and_retried():
    async def body(fixture):
        await fixture.apply()
        assert await fixture.reconcile() == RESYNC_SECONDS
        missing = await fixture.ready(), (await fixture.status())["phase"]
        await fixture.make_cluster()
        assert await fixture.reconcile() == RECHECK_SECONDS
        waiting = await fixture.ready(), (await fixture.status())["phase"]
        await fixture.open()
        await fixture.reconcile()
        return missing, waiting, await fixture.ready(), fixture.events()

    missing, waiting, ready, events = run_test(body)
    assert missing == (("False", "ClusterNotFound"), "Pending")
    assert waiting == (("False", "ClusterNotReady"), "Pending")
    assert ready == ("True", "Applied")
    assert events == [("orders", "Failed"), ("orders", "Created")]


def test_topics_wait_while_a_restore_is_pending():
    async def body(fixture):
        await fixture.open()
        await mark_restored(fixture.store, snapshot="s", taken_at_ms=1, restored_at_ms=2)
        await fixture.apply()
        assert await fixture.reconcile() == RECHECK_SECONDS
        before = await fixture.ready(), fixture.api.get("orders")
        assert await complete_restore(fixture.store, await find_pending_restore(fixture.store))
        await fixture.reconcile()
        return before, await fixture.ready()

    before, after = run_test(body)
    assert before == (("Unknown", "StoreUnavailable"), None)
    assert after == ("True", "Applied")


def test_invalid_resource_is_reported_once_and_changes_nothing():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=2)
        await fixture.reconcile()
        await fixture.apply(partitions=3, config={"segment.ms": "never"})
        for _ in range(3):
            await fixture.reconcile()
            await asyncio.sleep(RESYNC_SECONDS)
        return fixture.api.get("orders").partitions, await fixture.status(), fixture.kube.events

    partitions, status, events = run_test(body)
    assert partitions == 2
    assert status["phase"] == "Failed"
    assert len(status["partitions"]) == 2
    assert status["applied"]["partitions"] == 2
    (ready,) = status["conditions"]
    assert ready["reason"] == "InvalidConfig"
    assert "Not a number of type LONG" in ready["message"]
    assert [each.reason for each in events] == ["Created", "Failed"]
    assert events[1].warning
    assert events[1].message.startswith("InvalidConfig: Invalid value never")


def test_colliding_name_is_rejected():
    async def body(fixture):
        await fixture.open()
        await fixture.api.create("a.b", 1, {}, 1, bytes(16))
        await wait_for_watches()
        await fixture.apply(topicName="a_b")
        await fixture.reconcile()
        return await fixture.ready(), set(fixture.api.topics)

    assert run_test(body) == (("False", "InvalidName"), {"a.b"})


def test_older_of_two_resources_owns_the_topic():
    async def body(fixture):
        await fixture.open()
        await fixture.apply("first", topicName="orders", partitions=1)
        await fixture.reconcile("first")
        await asyncio.sleep(2)
        await fixture.apply("second", topicName="orders", partitions=9)
        await fixture.reconcile("second")
        partitions = fixture.api.get("orders").partitions
        rejected = await fixture.ready("second"), await fixture.status("second")
        assert await fixture.finalize("second")
        assert fixture.api.get("orders")
        # Once the first is deleted with its topic, the second is applied.
        assert await fixture.finalize("first")
        await fixture.kube.delete(TOPICS, NAMESPACE, "first")
        await finish_deletion(fixture.store, fixture.api, "orders")
        await asyncio.sleep(RESYNC_SECONDS)
        await fixture.reconcile("second")
        return partitions, rejected, fixture.api.get("orders").partitions

    partitions, (ready, status), partitions_afterwards = run_test(body)
    assert partitions == 1
    assert ready == ("False", "Conflict")
    assert "topicId" not in status
    assert "partitions" not in status
    assert partitions_afterwards == 9


def test_concurrent_resources_do_not_both_act():
    """The first run of both sees a list from before either existed."""

    async def body(fixture):
        await fixture.open()
        await fixture.apply("other")
        await fixture.reconcile("other")
        await fixture.apply("alpha", topicName="orders", partitions=1)
        await fixture.apply("beta", topicName="orders", partitions=9)
        await fixture.reconcile("beta")
        await fixture.reconcile("alpha")
        return fixture.api.get("orders").partitions, await fixture.ready("beta")

    assert run_test(body) == (1, ("False", "Conflict"))


def test_adoption_checks_for_conflicts_first():
    """Nothing would be changed, but the topic would be deleted with the wrong resource."""

    async def body(fixture):
        await fixture.open()
        await fixture.apply("other")
        await fixture.reconcile("other")
        configs = {"retention.ms": WEEK, "retention.bytes": "-1"}
        await fixture.api.create("orders", 3, configs, 1, bytes(16))
        await wait_for_watches()
        await fixture.apply("alpha", topicName="orders")
        await fixture.apply("beta", topicName="orders")
        await fixture.reconcile("beta")
        return await fixture.ready("beta")

    assert run_test(body) == ("False", "Conflict")


def test_resource_that_lost_a_conflict_deletes_nothing():
    """Created in the same second, the first by name owns the topic, though it came later."""

    async def body(fixture):
        await fixture.open()
        await fixture.apply("beta", topicName="orders")
        await fixture.reconcile("beta")
        await fixture.apply("alpha", topicName="orders")
        await fixture.reconcile("alpha")
        assert (await fixture.status("beta"))["topicId"] == (await fixture.status("alpha"))[
            "topicId"
        ]
        assert await fixture.finalize("beta")
        return set(fixture.api.topics), await fixture.ready("alpha")

    assert run_test(body) == ({"orders"}, ("True", "Applied"))


def test_resource_with_an_invalid_schema_is_ignored_and_can_be_deleted():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions="many")
        assert await fixture.reconcile() == RESYNC_SECONDS
        return await fixture.finalize(), fixture.status_writes(), set(fixture.api.topics)

    assert run_test(body) == (True, 0, set())


def test_pending_deletion_of_a_former_topic_is_waited_for():
    async def body(fixture):
        await fixture.open()
        await fixture.api.create("orders", 1, {}, 1, bytes(16))
        await fixture.api.delete("orders")
        await wait_for_watches()
        await fixture.apply()
        await fixture.reconcile()
        waiting = await fixture.ready()
        await finish_deletion(fixture.store, fixture.api, "orders")
        await wait_for_watches()
        await fixture.reconcile()
        return waiting, await fixture.ready(), fixture.events()

    waiting, ready, events = run_test(body)
    assert waiting == ("False", "DeletionInProgress")
    assert ready == ("True", "Applied")
    assert events == [("orders", "Created")]


def test_unavailable_store_keeps_the_last_known_status():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(partitions=2)
        await fixture.reconcile()
        before = await fixture.status()
        await fixture.store.close()
        await wait_for_watches()
        assert await fixture.reconcile() == RECHECK_SECONDS
        return before, await fixture.status(), fixture.events()

    before, after, events = run_test(body)
    assert {**after, "conditions": None} == {**before, "conditions": None}
    (ready,) = after["conditions"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "StoreUnavailable")
    assert events == [("orders", "Created"), ("orders", "Failed")]


def test_corrupt_store_entry_is_reported():
    """The cache has no such topic, but the store has: creating it is rejected twice."""

    async def body(fixture):
        await fixture.open()
        await fixture.store.commit([], [Put(keys.topic_config("orders"), b"\xff")])
        await wait_for_watches()
        await fixture.apply()
        await fixture.reconcile()
        return await fixture.ready()

    assert run_test(body) == ("False", "Rejected")


def test_api_server_failure_is_raised():
    async def body(fixture):
        await fixture.open()
        resource = await fixture.apply()
        fixture.kube.failure = KubeError("no answer")
        with pytest.raises(KubeError):
            await fixture.reconciler.reconcile(resource)
        assert not fixture.api.topics
        return fixture.kube.events

    assert run_test(body) == []
