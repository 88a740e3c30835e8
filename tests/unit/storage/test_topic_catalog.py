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


def test_catalog_lists_deleted_topics():
    async def scenario():
        store = MemoryObjectStore(lambda: 0)
        writer = CatalogWriter(store, "default")
        for deleted in ([], [b"b" * 16, b"a" * 16]):
            await writer.write([ORDERS], deleted_ids=deleted)
        catalog, _ = await topic_catalog.read(store, "default")
        assert catalog.deleted_topic_ids == ("61" * 16, "62" * 16)
        assert catalog.deleted_ids == {b"a" * 16, b"b" * 16}

    asyncio.run(scenario())


def test_catalog_without_cluster_id_is_read():
    topic = b'{"name":"a","topic_id":"%s","partition_count":1}' % (b"0f" * 16)
    data = b'{"topics":[' + topic + b'],"version":1}'
    decoded = topic_catalog.decode("k", data)
    assert (decoded.cluster_id, decoded.revision, decoded.topics[0].config_version) == ("", 0, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"topics":[],"cluster_id":"\xff"}',
        b'{"unknown":' + b"[" * 100_000,
        b'{"topics": [{"name": 1}]}',
        b'{"topics":[],"version":9}',
        b'{"topics":[],"deleted_topic_ids":["0f"]}',
        b'{"topics":[{"name":"a","topic_id":"0f","partition_count":1}]}',
    ],
)
def test_invalid_catalog_is_damaged(data):
    with pytest.raises(DamagedObjectError, match="k"):
        topic_catalog.decode("k", data)


def test_catalog_is_written_only_when_changed():
    async def scenario():
        writes = []
        store = ObservedObjectStore(
            MemoryObjectStore(lambda: 0),
            lambda operation, status, *_: writes.append(status) if operation == "put" else None,
        )
        writer = CatalogWriter(store, "default")
        for topics in ([ORDERS], [ORDERS], [], []):
            await writer.write(topics)
        assert writes.count(SUCCESS) == 2
        data = await store.get(object_keys.catalog_key("default"))
        assert topic_catalog.decode("k", bytes(data)).topics == ()

    asyncio.run(scenario())


def catalog_after(existing: bytes | None, *, revision: int) -> topic_catalog.Catalog:
    """The catalog after this cluster has written an empty one."""

    async def scenario():
        store = MemoryObjectStore(lambda: 0)
        key = object_keys.catalog_key("default")
        if existing is not None:
            await store.put(key, [existing])
        await CatalogWriter(store, "default", "ours").write([], revision)
        return topic_catalog.decode(key, bytes(await store.get(key)))

    return asyncio.run(scenario())


@pytest.mark.parametrize(("cluster_id", "revision"), [("theirs", 1), ("ours", 8)])
def test_catalog_of_another_cluster_or_of_a_higher_revision_is_not_overwritten(
    cluster_id, revision
):
    existing = topic_catalog.encode([ORDERS], cluster_id=cluster_id, revision=revision)
    assert catalog_after(existing, revision=7).topics == (ORDERS,)


@pytest.mark.parametrize(
    "existing",
    [
        None,
        b"damaged",
        topic_catalog.encode([ORDERS], cluster_id="ours", revision=6),
        topic_catalog.encode([ORDERS]),
    ],
)
def test_older_catalog_is_overwritten(existing):
    assert catalog_after(existing, revision=7).topics == ()


def test_controller_that_is_elected_again_does_not_rely_on_what_it_wrote():
    async def scenario():
        store = MemoryObjectStore(lambda: 0)
        first, second = (CatalogWriter(store, "default", "ours") for _ in range(2))
        await first.write([ORDERS], 1)
        await second.write([], 2)
        first.forget()
        await first.write([ORDERS], 3)
        data = bytes(await store.get(object_keys.catalog_key("default")))
        assert topic_catalog.decode("k", data).topics == (ORDERS,)

    asyncio.run(scenario())
