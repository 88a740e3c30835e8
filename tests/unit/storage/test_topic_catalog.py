"""The topic catalog: round trip, versions and damage."""

import asyncio

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.layers.observed import SUCCESS, ObservedObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.topic_catalog import CatalogTopic, CatalogWriter

ORDERS = CatalogTopic("orders", "0f" * 16, 3, {"cleanup.policy": "compact"})


def test_topics_are_sorted_by_name_and_read_back():
    data = topic_catalog.encode([ORDERS, CatalogTopic("audit", "00" * 16, 1)])
    assert [topic.name for topic in topic_catalog.decode("k", data).topics] == ["audit", "orders"]
    assert topic_catalog.decode("k", data).topics[1] == ORDERS


def test_catalog_contains_cluster_id_and_revision():
    async def scenario():
        store = MemoryObjectStore(lambda: 0)
        writer = CatalogWriter(store, "default", "a-cluster")
        for revision in (7, 8):
            await writer.write([ORDERS], revision)
        data = bytes(await store.get(object_keys.catalog_key("default")))
        decoded = topic_catalog.decode("k", data)
        assert (decoded.cluster_id, decoded.revision) == ("a-cluster", 7)

    asyncio.run(scenario())


def test_catalog_without_cluster_id_is_read():
    data = b'{"topics":[{"name":"a","topic_id":"00","partition_count":1}],"version":1}'
    decoded = topic_catalog.decode("k", data)
    assert (decoded.cluster_id, decoded.revision, decoded.topics[0].config_version) == ("", 0, 0)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"topics": [{"name": 1}]}', b'{"topics":[],"version":9}']
)
def test_invalid_catalog_is_damaged(data):
    with pytest.raises(DamagedObjectError, match="k"):
        topic_catalog.decode("k", data)


def test_catalog_is_written_only_when_changed():
    async def scenario():
        writes = []
        store = ObservedObjectStore(
            MemoryObjectStore(lambda: 0), lambda _operation, status, *_: writes.append(status)
        )
        writer = CatalogWriter(store, "default")
        for topics in ([ORDERS], [ORDERS], [], []):
            await writer.write(topics)
        assert writes.count(SUCCESS) == 2
        data = await store.get(object_keys.catalog_key("default"))
        assert topic_catalog.decode("k", bytes(data)).topics == ()

    asyncio.run(scenario())
