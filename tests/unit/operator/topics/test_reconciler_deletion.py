"""Tests of deletion: a resource deletes only its own topic, and never blocks forever."""

import asyncio

import pytest

from kafscale.operator.kube.api import CLUSTERS
from kafscale.operator.topics.reconciler import RESYNC_SECONDS
from unit.metadata.finished_deletion import finish_deletion
from unit.operator.topics.fixture import CLUSTER, run_test, wait_for_watches
from unit.operator.topics.resources import NAMESPACE


def test_topic_is_deleted_with_its_resource():
    async def body(fixture):
        await fixture.open()
        await fixture.apply()
        await fixture.reconcile()
        assert await fixture.finalize()
        await wait_for_watches()
        assert await fixture.finalize()
        return dict(fixture.api.topics), set(fixture.api.deletions), fixture.events()

    topics, deletions, events = run_test(body)
    assert topics == {}
    assert deletions == {"orders"}
    assert events == [("orders", "Created"), ("orders", "Deleted")]


def test_retained_topic_is_kept():
    async def body(fixture):
        await fixture.open()
        await fixture.apply(deletionPolicy="Retain")
        await fixture.reconcile()
        assert await fixture.finalize()
        return set(fixture.api.topics)

    assert run_test(body) == {"orders"}


def test_topic_that_was_not_applied_to_is_kept():
    async def body(fixture):
        await fixture.open()
        await fixture.api.create("orders", 1, {}, 1, bytes(16))
        await wait_for_watches()
        assert await fixture.reconciler.finalize(await fixture.apply(config={"nonsense": "1"}))
        await fixture.apply()
        await fixture.reconcile()
        await fixture.api.delete("orders")
        await finish_deletion(fixture.store, fixture.api, "orders")
        await fixture.api.create("orders", 1, {}, 1, bytes(range(16)))
        await wait_for_watches()
        assert await fixture.finalize()
        return set(fixture.api.topics), fixture.events()

    topics, events = run_test(body)
    assert topics == {"orders"}
    assert ("orders", "Deleted") not in events


def test_deleted_cluster_does_not_block_the_deletion():
    async def body(fixture):
        await fixture.open()
        await fixture.apply()
        await fixture.reconcile()
        await fixture.kube.delete(CLUSTERS, NAMESPACE, CLUSTER)
        await fixture.registry.close(NAMESPACE, CLUSTER)
        return await fixture.finalize()

    assert run_test(body)


@pytest.mark.parametrize("is_open", [True, False])
def test_unavailable_store_blocks_unless_the_cluster_is_being_deleted(is_open):
    async def body(fixture):
        await fixture.open()
        await fixture.make_cluster(finalizers=["kafscale.io/cluster"])
        await fixture.apply()
        await fixture.reconcile()
        await fixture.store.close()
        if not is_open:
            await fixture.registry.close(NAMESPACE, CLUSTER)
        await wait_for_watches()
        for _ in range(3):
            assert not await fixture.finalize()
            await asyncio.sleep(RESYNC_SECONDS)
        blocked = await fixture.ready(), (await fixture.status())["phase"], fixture.events()
        await fixture.kube.delete(CLUSTERS, NAMESPACE, CLUSTER)
        return blocked, await fixture.finalize()

    (ready, phase, events), is_done = run_test(body)
    assert ready == ("False", "DeletionFailed")
    assert phase == "Deleting"
    assert events == [("orders", "Created"), ("orders", "Failed")]
    assert is_done
