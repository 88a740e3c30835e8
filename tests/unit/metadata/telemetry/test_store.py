"""`SubscriptionStore`: subscriptions as brokers see and change them."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.metadata.store.base import Put
from kafscale.metadata.telemetry.store import SubscriptionStore
from kafscale.metadata.telemetry.subscription import check

NAME = "slow/50%"


@asynccontextmanager
async def brokers(store, count):
    created = [SubscriptionStore(store) for _ in range(count)]
    for each in created:
        await each.start()
    yield created
    for each in created:
        await each.close()


def setting(**configs):
    return lambda current: {**current, **configs}


def test_change_is_visible_on_every_broker_and_after_a_restart(run_with_store):
    async def body(store):
        async with brokers(store, 2) as (one, other):
            version = one.version
            await one.alter(NAME, setting(metrics="*"))
            assert one.subscriptions[NAME].metrics == ("*",)
            assert one.version > version
            await other.alter(NAME, setting(match="client_id=a"))
            assert other.configs == {NAME: {"metrics": "*", "match": "client_id=a"}}
        async with brokers(store, 1) as [later]:
            assert set(later.configs) == {NAME}
            await later.alter(NAME, lambda _: {})
            assert not later.configs
            assert not later.subscriptions

    run_with_store(body)


def test_concurrent_changes_are_both_kept(run_with_store):
    async def body(store):
        async with brokers(store, 2) as (one, other):
            await asyncio.gather(
                one.alter(NAME, setting(metrics="*")),
                other.alter(NAME, setting(match="client_id=a")),
            )
            assert (await store.get("/kafscale/telemetry/slow%2F50%25")) is not None
        async with brokers(store, 1) as [later]:
            assert later.configs[NAME] == {"metrics": "*", "match": "client_id=a"}

    run_with_store(body)


def test_refused_change_changes_nothing(run_with_store):
    def refused(current):
        check(NAME, {**current, "interval.ms": "1"})

    async def body(store):
        async with brokers(store, 1) as [only]:
            with pytest.raises(InvalidRequestError):
                await only.alter(NAME, refused)
            assert not only.configs

    run_with_store(body)


@pytest.mark.parametrize("value", [b"\xff", b"", b"\n\x04else"])
def test_damaged_subscription_is_absent_and_can_be_replaced(run_with_store, value):
    async def body(store):
        await store.commit([], [Put("/kafscale/telemetry/a", value)])
        async with brokers(store, 1) as [only]:
            assert not only.subscriptions
            await only.alter("a", setting(metrics="*"))
            assert set(only.subscriptions) == {"a"}

    run_with_store(body)
