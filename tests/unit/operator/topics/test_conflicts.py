"""The oldest of several resources has a topic."""

import asyncio

from kafscale.operator.kube.kinds import TOPICS
from kafscale.operator.spec.topic import read_topic
from kafscale.operator.topics.conflicts import FRESH_MS, Rivals, oldest
from kafscale.testing import virtual_time
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest, resource


def test_the_oldest_has_the_topic_and_of_equals_the_first_by_name():
    young = resource("young", topicName="orders", created="2025-06-15T00:00:02Z")
    old = resource("old", topicName="orders", created="2025-06-15T00:00:01Z")
    equal = resource("equal", topicName="orders", created="2025-06-15T00:00:01Z")
    for order in ([young, old, equal], [equal, old, young], [old, young, equal]):
        assert oldest(order) == {("production", "orders"): equal}


def test_only_the_same_topic_of_the_same_cluster_is_a_conflict():
    found = oldest(
        [
            resource("orders"),
            resource("payments"),
            resource("elsewhere", topicName="orders", clusterRef="staging"),
        ]
    )
    assert {key: each.name for key, each in found.items()} == {
        ("production", "orders"): "orders",
        ("production", "payments"): "payments",
        ("staging", "orders"): "elsewhere",
    }


class CountingKube(MemoryKube):
    """Counts lists, which take their time."""

    lists = 0

    async def list(self, kind, namespace="", labels=None):
        self.lists += 1
        found = await super().list(kind, namespace, labels)
        await asyncio.sleep(1)
        return found


def play(body):
    async def scenario(_random):
        kube = CountingKube(virtual_time.clock_ms)
        return await body(kube, Rivals(kube, virtual_time.clock_ms))

    return virtual_time.run(scenario, seed=0)


async def made(kube, name, **spec):
    return read_topic(await kube.apply(manifest(name, **spec)))


def test_an_older_resource_is_found_and_a_younger_one_is_none():
    async def body(kube, rivals):
        first = await made(kube, "first", topicName="orders")
        await asyncio.sleep(1)
        second = await made(kube, "second", topicName="orders")
        assert await rivals.older(first, now=True) is None
        return (await rivals.older(second, now=True)).name

    assert play(body) == "first"


def test_one_list_serves_many_but_who_has_to_know_gets_a_new_one():
    async def body(kube, rivals):
        one = await made(kube, "one", topicName="orders")
        await rivals.older(one, now=False)
        await rivals.older(one, now=False)
        assert kube.lists == 1
        await rivals.older(one, now=True)
        assert kube.lists == 2
        await asyncio.sleep(FRESH_MS / 1000)
        await rivals.older(one, now=False)
        return kube.lists

    assert play(body) == 3


def test_a_crowd_that_has_to_know_is_answered_by_two_lists():
    """The first list may have begun before some of them asked; the next one serves all."""

    async def body(kube, rivals):
        resources = [await made(kube, f"topic-{number}") for number in range(50)]
        first = asyncio.create_task(rivals.older(resources[0], now=True))
        await asyncio.sleep(0.5)
        await made(kube, "before", topicName="topic-1")
        late = await made(kube, "late", topicName="before")
        crowd = [rivals.older(each, now=True) for each in [*resources, late]]
        found = await asyncio.gather(first, *crowd)
        return kube.lists, [each.name for each in found if each]

    assert play(body) == (2, ["before"])


def test_who_is_newer_than_the_list_is_not_taken_for_older():
    async def body(kube, rivals):
        gone = await made(kube, "gone", topicName="orders")
        await rivals.older(gone, now=True)
        await kube.delete(TOPICS, NAMESPACE, "gone")
        again = await made(kube, "gone", topicName="orders")
        return await rivals.older(again, now=False)

    assert play(body) is None


def test_what_cannot_be_read_stands_in_nobody_s_way():
    async def body(kube, rivals):
        await kube.apply(manifest("a-wrong-one", topicName="orders", partitions="many"))
        return await rivals.older(await made(kube, "right", topicName="orders"), now=True)

    assert play(body) is None
