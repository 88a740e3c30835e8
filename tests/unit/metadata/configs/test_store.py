"""`ConfigStore`: dynamic configs as brokers see and change them."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from kafscale.errors import PolicyViolationError
from kafscale.metadata.configs.model import ConfigEntity, EntityKind, entity_of
from kafscale.metadata.configs.store import RECORD_BYTES_MAX, ConfigStore
from kafscale.metadata.store.base import Put

GROUP = ConfigEntity(EntityKind.GROUP, "a/<default>%")
BROKER = ConfigEntity(EntityKind.BROKER, "3")
ALL_BROKERS = ConfigEntity(EntityKind.BROKER, "")


@asynccontextmanager
async def brokers(store, count=1, **limits):
    created = [ConfigStore(store, timeout_ms=2_000, **limits) for _ in range(count)]
    for each in created:
        await each.start()
    yield created if count > 1 else created[0]
    for each in created:
        await each.close()


def adding(name, value="1"):
    return lambda current: {**current, name: value}


@pytest.mark.parametrize(
    "entity",
    [GROUP, BROKER, ALL_BROKERS, ConfigEntity(EntityKind.GROUP, "<default>")],
    ids=lambda entity: entity.key,
)
def test_keys_name_one_entity(entity):
    assert entity_of(entity.key) == entity
    assert entity.key != ALL_BROKERS.key or entity == ALL_BROKERS


@pytest.mark.parametrize("key", ["/kafscale/configs/groups/", "/kafscale/configs/topics/a", "/x"])
def test_other_keys_name_none(key):
    assert entity_of(key) is None


def test_configs_are_visible_everywhere_and_survive_a_restart(run_with_store):
    async def body(store):
        async with brokers(store, 2) as (here, there):
            changes = []
            here.subscribe(changes.append)
            await here.alter(GROUP, adding("a"))
            await here.alter(ALL_BROKERS, adding("b"))
            await here.alter(ALL_BROKERS, adding("b"))
            assert changes == [GROUP, ALL_BROKERS]
            await there.alter(GROUP, adding("c", "2"))
            assert there.get(GROUP) == {"a": "1", "c": "2"}
            assert there.names(EntityKind.GROUP) == [GROUP.name]
        async with brokers(store) as later:
            assert later.connected
            assert later.get(GROUP) == {"a": "1", "c": "2"}
            assert later.get(BROKER) == {}
            await later.alter(GROUP, lambda _current: {})
            assert later.names(EntityKind.GROUP) == []
            assert await store.get(GROUP.key) is None

    run_with_store(body)


def test_concurrent_changes_are_not_lost(run_with_store):
    async def body(store):
        async with brokers(store, 2) as both:
            names = [f"config-{number}" for number in range(10)]
            await asyncio.gather(
                *(both[index % 2].alter(BROKER, adding(name)) for index, name in enumerate(names))
            )
            for each in both:
                await each.alter(BROKER, adding("last"))
                assert each.get(BROKER).keys() == {*names, "last"}

    run_with_store(body)


def test_failed_change_changes_nothing(run_with_store):
    async def body(store):
        async with brokers(store) as configs:
            await configs.alter(BROKER, adding("a"))

            def fail(_current):
                raise PolicyViolationError("no")

            with pytest.raises(PolicyViolationError):
                await configs.alter(BROKER, fail)
            assert configs.get(BROKER) == {"a": "1"}

    run_with_store(body)


def test_number_and_size_of_records_are_limited(run_with_store):
    async def body(store):
        async with brokers(store, entities_max=2) as configs:
            with pytest.raises(PolicyViolationError, match="bytes"):
                await configs.alter(BROKER, adding("a", "x" * RECORD_BYTES_MAX))
            await configs.alter(BROKER, adding("a"))
            await configs.alter(ALL_BROKERS, adding("a"))
            with pytest.raises(PolicyViolationError, match="limit"):
                await configs.alter(GROUP, adding("a"))
            await configs.alter(BROKER, adding("b"))

    run_with_store(body)


def test_damaged_record_counts_as_empty_and_can_be_replaced(run_with_store):
    async def body(store):
        async with brokers(store) as configs:
            await configs.alter(GROUP, adding("a"))
            await store.commit([], [Put(GROUP.key, b"\xff"), Put("/kafscale/configs/x/y", b"z")])
            await configs.alter(BROKER, adding("later"))
            assert configs.get(GROUP) == {}
            await configs.alter(GROUP, adding("b"))
            assert configs.get(GROUP) == {"b": "1"}

    run_with_store(body)
