"""A topic goes with its resource, if it is the resource's, and nothing waits for ever."""

import asyncio

import pytest

from kafscale.operator.kube.kinds import CLUSTERS
from kafscale.operator.topics.reconciler import SETTLED_SECONDS
from unit.operator.topics.resources import NAMESPACE
from unit.operator.topics.stage import CLUSTER, play, settled


def test_a_topic_goes_with_its_resource():
    async def body(stage):
        await stage.open()
        await stage.apply()
        await stage.reconcile()
        assert await stage.let_go()
        await settled()
        assert await stage.let_go()
        return dict(stage.api.topics), set(stage.api.deletions), stage.told()

    topics, deletions, told = play(body)
    assert topics == {}
    assert deletions == {"orders"}
    assert told == [("orders", "Created"), ("orders", "Deleted")]


def test_a_topic_that_is_to_be_retained_stays():
    async def body(stage):
        await stage.open()
        await stage.apply(deletionPolicy="Retain")
        await stage.reconcile()
        assert await stage.let_go()
        return set(stage.api.topics)

    assert play(body) == {"orders"}


def test_a_topic_that_was_never_ours_or_is_no_longer_the_one_stays():
    async def body(stage):
        await stage.open()
        await stage.api.create("orders", 1, {}, 1, bytes(16))
        await settled()
        assert await stage.reconciler.let_go(await stage.apply(config={"nonsense": "1"}))
        await stage.apply()
        await stage.reconcile()
        await stage.api.delete("orders")
        await stage.api.finish_deletion("orders", bytes(16))
        await stage.api.create("orders", 1, {}, 1, bytes(range(16)))
        await settled()
        assert await stage.let_go()
        return set(stage.api.topics), stage.told()

    topics, told = play(body)
    assert topics == {"orders"}
    assert ("orders", "Deleted") not in told


def test_a_cluster_that_is_gone_holds_nobody_up():
    async def body(stage):
        await stage.open()
        await stage.apply()
        await stage.reconcile()
        await stage.kube.delete(CLUSTERS, NAMESPACE, CLUSTER)
        await stage.registry.close(NAMESPACE, CLUSTER)
        return await stage.let_go()

    assert play(body)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_store_that_does_not_answer_is_tried_again_unless_the_cluster_is_going(is_open):
    async def body(stage):
        await stage.open()
        await stage.make_cluster(finalizers=["kafscale.io/cluster"])
        await stage.apply()
        await stage.reconcile()
        await stage.store.close()
        if not is_open:
            await stage.registry.close(NAMESPACE, CLUSTER)
        await settled()
        for _ in range(3):
            assert not await stage.let_go()
            await asyncio.sleep(SETTLED_SECONDS)
        blocked = await stage.ready(), (await stage.status())["phase"], stage.told()
        await stage.kube.delete(CLUSTERS, NAMESPACE, CLUSTER)
        return blocked, await stage.let_go()

    (ready, phase, told), is_done = play(body)
    assert ready == ("False", "DeletionFailed")
    assert phase == "Deleting"
    assert told == [("orders", "Created"), ("orders", "Failed")]
    assert is_done
