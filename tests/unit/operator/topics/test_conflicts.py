"""Tests of which resource owns a topic."""

import asyncio

from doubles import virtual_time
from kafscale.operator.kube.api import TOPICS
from kafscale.operator.spec.topic import read_topic
from kafscale.operator.topics.conflicts import FRESH_MS, TopicOwners, owners_by_topic
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest, resource


def test_oldest_resource_owns_the_topic_and_names_break_ties():
    younger = resource("young", topicName="orders", created="2025-06-15T00:00:02Z")
    older = resource("old", topicName="orders", created="2025-06-15T00:00:01Z")
    equal = resource("equal", topicName="orders", created="2025-06-15T00:00:01Z")
    for order in ([younger, older, equal], [equal, older, younger], [older, younger, equal]):
        assert owners_by_topic(order) == {("production", "orders"): equal}


def test_conflict_needs_the_same_topic_and_cluster():
    owners_found = owners_by_topic(
        [
            resource("orders"),
            resource("payments"),
            resource("elsewhere", topicName="orders", clusterRef="staging"),
        ]
    )
    assert {key: each.name for key, each in owners_found.items()} == {
        ("production", "orders"): "orders",
        ("production", "payments"): "payments",
        ("staging", "orders"): "elsewhere",
    }


class CountingKube(MemoryKube):
    """Counts lists, which take a second."""

    lists = 0

    async def list(self, kind, namespace="", labels=None):
        self.lists += 1
        owners_found = await super().list(kind, namespace, labels)
        await asyncio.sleep(1)
        return owners_found


def run_test(body):
    async def scenario(_random):
        kube = CountingKube(virtual_time.clock_ms)
        return await body(kube, TopicOwners(kube, virtual_time.clock_ms))

    return virtual_time.run(scenario, seed=0)


async def created(kube, name, **spec):
    return read_topic(await kube.apply(manifest(name, **spec)))


def test_only_an_older_resource_conflicts():
    async def body(kube, owners):
        first = await created(kube, "first", topicName="orders")
        await asyncio.sleep(1)
        second = await created(kube, "second", topicName="orders")
        assert await owners.conflicting(first, now=True) is None
        return (await owners.conflicting(second, now=True)).name

    assert run_test(body) == "first"


def test_list_is_cached_unless_fresh_data_is_required():
    async def body(kube, owners):
        listed = await created(kube, "one", topicName="orders")
        await owners.conflicting(listed, now=False)
        await owners.conflicting(listed, now=False)
        assert kube.lists == 1
        await owners.conflicting(listed, now=True)
        assert kube.lists == 2
        await asyncio.sleep(FRESH_MS / 1000)
        await owners.conflicting(listed, now=False)
        return kube.lists

    assert run_test(body) == 3


def test_concurrent_fresh_requests_share_two_lists():
    """The first list may have started before some of the requests; the next one serves all."""

    async def body(kube, owners):
        resources = [await created(kube, f"topic-{number}") for number in range(50)]
        first = asyncio.create_task(owners.conflicting(resources[0], now=True))
        await asyncio.sleep(0.5)
        await created(kube, "before", topicName="topic-1")
        late = await created(kube, "late", topicName="before")
        requests = [owners.conflicting(each, now=True) for each in [*resources, late]]
        owners_found = await asyncio.gather(first, *requests)
        return kube.lists, [each.name for each in owners_found if each]

    assert run_test(body) == (2, ["before"])


def test_recreated_resource_does_not_conflict_with_its_former_self():
    async def body(kube, owners):
        gone = await created(kube, "gone", topicName="orders")
        await owners.conflicting(gone, now=True)
        await kube.delete(TOPICS, NAMESPACE, "gone")
        again = await created(kube, "gone", topicName="orders")
        return await owners.conflicting(again, now=False)

    assert run_test(body) is None


def test_invalid_resources_do_not_conflict():
    async def body(kube, owners):
        await kube.apply(manifest("a-wrong-one", topicName="orders", partitions="many"))
        return await owners.conflicting(await created(kube, "right", topicName="orders"), now=True)

    assert run_test(body) is None
