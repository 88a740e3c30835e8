"""The API server in memory behaves as a real one, as far as the operator relies on it."""

import asyncio

import pytest

from kafscale.errors import KubeError
from kafscale.operator.kube.api import (
    CLUSTERS,
    CONFIG_MAPS,
    SERVICE_MONITORS,
    STATEFUL_SETS,
    TOPICS,
)
from services.memory_kube import MemoryKube


def config_map(name="settings", **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "data": data,
    }


def topic(**more):
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {"name": "orders", "namespace": "default"},
        **more,
    }


def run(body):
    async def scenario():
        return await body(MemoryKube())

    return asyncio.run(scenario())


def test_apply_removes_fields_no_longer_set_and_keeps_those_of_others():
    async def body(kube):
        await kube.apply(config_map(kept="1", dropped="2"))
        await kube.merge_patch(CONFIG_MAPS, "default", "settings", {"data": {"theirs": "3"}})
        return (await kube.apply(config_map(kept="4")))["data"]

    assert run(body) == {"kept": "4", "theirs": "3"}


def test_only_changes_create_a_version_and_only_spec_changes_a_generation():
    async def body(kube):
        first = await kube.apply(topic(spec={"partitions": 1}))
        again = await kube.apply(topic(spec={"partitions": 1}))
        await kube.apply_status(topic(status={"phase": "Ready"}))
        events = await kube.get(TOPICS, "default", "orders")
        grown = await kube.apply(topic(spec={"partitions": 2}))
        return [each["metadata"] for each in (first, again, events, grown)], grown, kube.writes

    (first, again, events, grown), after, writes = run(body)
    assert first == again
    assert [each["generation"] for each in (first, events, grown)] == [1, 1, 2]
    assert len({each["resourceVersion"] for each in (first, events, grown)}) == 3
    assert after["status"] == {"phase": "Ready"}
    assert [write.verb for write in writes] == ["apply", "status", "apply"]


def test_status_is_written_only_through_its_subresource():
    async def body(kube):
        await kube.apply_status(topic(status={"phase": "Lost"}))
        await kube.apply(topic(spec={}, status={"phase": "Lost"}))
        before = await kube.get(TOPICS, "default", "orders")
        await kube.apply_status(topic(status={"phase": "Ready", "applied": {"partitions": 1}}))
        await kube.merge_patch(TOPICS, "default", "orders", {"status": None})
        await kube.apply_status(topic(status={"phase": "Pending"}))
        return before, await kube.get(TOPICS, "default", "orders")

    before, after = run(body)
    assert "status" not in before
    assert after["status"] == {"phase": "Pending"}


def test_finalizers_delay_deletion_and_owned_objects_are_deleted_too():
    async def body(kube):
        owner = await kube.apply(
            {**topic(spec={}), "metadata": {**topic()["metadata"], "finalizers": ["ours"]}}
        )
        owned = config_map()
        owned["metadata"]["ownerReferences"] = [{"uid": owner["metadata"]["uid"]}]
        await kube.apply(owned)
        assert await kube.delete(TOPICS, "default", "orders")
        waiting = await kube.get(TOPICS, "default", "orders")
        assert await kube.get(CONFIG_MAPS, "default", "settings")
        await kube.merge_patch(TOPICS, "default", "orders", {"metadata": {"finalizers": None}})
        return waiting, kube.objects

    waiting, objects = run(body)
    assert waiting["metadata"]["deletionTimestamp"]
    assert objects == {}


def test_delete_and_replace_check_uid_and_version():
    async def body(kube):
        read = await kube.create(config_map(a="1"))
        assert await kube.create(config_map(a="1")) is None
        assert not await kube.delete(CONFIG_MAPS, "default", "settings", uid="another")
        with pytest.raises(KubeError, match="uid mismatch"):
            await kube.apply({**read, "metadata": {**read["metadata"], "uid": "another"}})
        written = await kube.replace({**read, "data": {"a": "2"}})
        assert written["data"] == {"a": "2"}
        assert await kube.replace({**read, "data": {"a": "3"}}) is None
        assert await kube.delete(CONFIG_MAPS, "default", "settings", uid=read["metadata"]["uid"])
        assert not await kube.delete(CONFIG_MAPS, "default", "settings")
        return await kube.merge_patch(CONFIG_MAPS, "default", "settings", {})

    assert run(body) is None


def test_objects_are_listed_by_namespace_and_labels():
    async def body(kube):
        await kube.apply(config_map("a"))
        await kube.apply(config_map("b"))
        everywhere = await kube.list(CONFIG_MAPS)
        labelled = await kube.list(CONFIG_MAPS, "default", {"app": "b"})
        return [
            [each["metadata"]["name"] for each in listed]
            for listed in (everywhere, labelled, await kube.list(CONFIG_MAPS, "other"))
        ]

    assert run(body) == [["a", "b"], ["b"], []]


def test_scale_subresource_changes_replicas_only():
    async def body(kube):
        await kube.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": "brokers", "namespace": "default"},
                "spec": {"serviceName": "brokers"},
            }
        )
        scaled = await kube.merge_patch(
            STATEFUL_SETS, "default", "brokers", {"spec": {"replicas": 3}}, subresource="scale"
        )
        return scaled["spec"]

    assert run(body) == {"serviceName": "brokers", "replicas": 3}


def test_unknown_kinds_and_failures_raise_errors():
    async def body(kube):
        assert await kube.supports(CLUSTERS)
        assert not await kube.supports(SERVICE_MONITORS)
        with pytest.raises(KubeError, match="ServiceMonitor"):
            await kube.list(SERVICE_MONITORS)
        kube.failure = KubeError("the API server did not answer")
        with pytest.raises(KubeError, match="did not answer"):
            await kube.get(CLUSTERS, "default", "production")
        await kube.record_event(topic(), "Lost", "is not recorded")
        kube.failure = None
        await kube.record_event(topic(), "Created", "a topic", warning=True)
        return kube.events

    assert run(body) == [("orders", "Created", "a topic", True)]


def test_returned_objects_are_copies():
    async def body(kube):
        (await kube.apply(config_map(a="1")))["data"]["a"] = "2"
        (await kube.list(CONFIG_MAPS))[0]["data"]["a"] = "3"
        return (await kube.get(CONFIG_MAPS, "default", "settings"))["data"]

    assert run(body) == {"a": "1"}
