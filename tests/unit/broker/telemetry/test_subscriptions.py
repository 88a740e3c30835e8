"""`Subscriptions`: subscriptions of client metrics as brokers see them."""

import asyncio
from contextlib import asynccontextmanager

from doubles.memory_store import MemoryStore
from kafscale.broker.telemetry.subscriptions import Subscriptions, entity
from kafscale.metadata.configs.store import ConfigStore

NAME = "slow/50%"


@asynccontextmanager
async def config_stores(count):
    metadata = MemoryStore(lambda: 0)
    created = [ConfigStore(metadata) for _ in range(count)]
    for each in created:
        await each.start()
    yield created
    for each in created:
        await each.close()


def setting(**configs):
    return lambda current: {**current, **configs}


def test_changes_are_seen_on_every_broker():
    async def scenario():
        async with config_stores(2) as (one, other):
            seen = Subscriptions(one)
            version = seen.version
            await other.alter(entity(NAME), setting(metrics="*"))
            await one.alter(entity(NAME), setting(match="client_id=a"))
            assert seen.by_name[NAME].metrics == ("*",)
            assert seen.by_name[NAME].patterns == {"client_id": "a"}
            assert Subscriptions(one).by_name == seen.by_name, "those that were there before"
            assert seen.version > version
            await one.alter(entity(NAME), lambda _: {})
            assert not seen.by_name

    asyncio.run(scenario())


def test_invalid_subscription_is_left_out_until_it_is_replaced():
    async def scenario():
        async with config_stores(1) as [only]:
            seen = Subscriptions(only)
            await only.alter(entity(NAME), lambda _: {"interval.ms": "1"})
            assert not seen.by_name
            await only.alter(entity(NAME), lambda _: {"interval.ms": "1000"})
            assert seen.by_name[NAME].interval_ms == 1000

    asyncio.run(scenario())
