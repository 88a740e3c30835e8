"""Watching assignments: the events, their order, and slow watchers."""

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.control_plane.assignment_feed import AssignmentFeed, PartitionOwner, changes
from kafscale.control_plane.messages import Partition
from kafscale.errors import OverloadedError, StoreUnavailableError
from unit.broker.harness import run, run_pending
from unit.control_plane.scripted_broker import ORDERS_1, ScriptedBroker, describe, next_events


def feed_of(broker, **bounds):
    feed = AssignmentFeed(broker.partition_owners, **bounds)
    broker.subscribe(feed.changed)
    return feed


def test_watch_yields_the_current_state_and_then_changes():
    async def scenario():
        broker = ScriptedBroker()
        broker.owners[ORDERS_1] = PartitionOwner(4, 0, reassigning_to=5)
        async with aclosing(feed_of(broker).watch()) as events:
            first = [await anext(events), await anext(events)]
            assert [describe(event) for event in first] == [
                "orders/0 assigned 3 @7",
                "orders/1 moving 4>5 @0",
            ]
            assert all(event.is_initial for event in first)
            broker.assign(orders_1=PartitionOwner(5, 1))
            changed = [await anext(events), await anext(events)]
            assert [describe(event) for event in changed] == [
                "orders/1 released 4 @0",
                "orders/1 assigned 5 @1",
            ]
            assert not any(event.is_initial for event in changed)
            broker.assign(orders_0=None)
            assert await next_events(events, 1) == ["orders/0 released 3 @7"]

    run(scenario)


def test_watch_of_one_broker_yields_no_others():
    async def scenario():
        broker = ScriptedBroker()
        async with aclosing(feed_of(broker).watch("4")) as events:
            task = asyncio.ensure_future(anext(events))
            await run_pending()
            broker.assign(orders_0=PartitionOwner(5, 8))
            await run_pending()
            assert not task.done()
            broker.assign(orders_0=PartitionOwner(4, 9))
            assert describe(await task) == "orders/0 assigned 4 @9"
            broker.assign(orders_0=PartitionOwner(5, 10))
            assert await next_events(events, 1) == ["orders/0 released 4 @9"]

    run(scenario)


def test_simultaneous_changes_are_merged():
    async def scenario():
        broker = ScriptedBroker()
        async with aclosing(feed_of(broker).watch()) as events:
            await anext(events)
            broker.assign(orders_0=PartitionOwner(3, 7, reassigning_to=4))
            broker.assign(orders_0=PartitionOwner(4, 8))
            assert await next_events(events, 2) == [
                "orders/0 released 3 @7",
                "orders/0 assigned 4 @8",
            ]

    run(scenario)


def test_new_watcher_does_not_hide_changes_from_others():
    async def scenario():
        broker = ScriptedBroker()
        feed = feed_of(broker)
        async with aclosing(feed.watch()) as first, aclosing(feed.watch()) as second:
            await anext(first)
            broker.assign(orders_0=PartitionOwner(4, 8))
            assert await next_events(second, 1) == ["orders/0 assigned 4 @8"]
            assert await next_events(first, 2) == [
                "orders/0 released 3 @7",
                "orders/0 assigned 4 @8",
            ]
            broker.assign(orders_0=PartitionOwner(4, 8, reassigning_to=3))
            assert await next_events(second, 1) == ["orders/0 moving 4>3 @8"]
            assert await next_events(first, 1) == ["orders/0 moving 4>3 @8"]

    run(scenario)


def test_slow_watcher_is_disconnected_alone():
    async def scenario():
        broker = ScriptedBroker()
        feed = feed_of(broker, events_max=4)
        async with aclosing(feed.watch()) as slow, aclosing(feed.watch()) as quick:
            await anext(slow)
            await anext(quick)
            for epoch in range(8, 13):
                broker.assign(orders_0=PartitionOwner(3, epoch))
                assert await next_events(quick, 1) == [f"orders/0 assigned 3 @{epoch}"]
            with pytest.raises(OverloadedError, match="too slowly"):
                await anext(slow)
            broker.assign(orders_0=PartitionOwner(3, 13))
            assert await next_events(quick, 1) == ["orders/0 assigned 3 @13"]

    run(scenario)


def test_number_of_watchers_is_limited():
    async def scenario():
        feed = feed_of(ScriptedBroker(), watchers_max=1)
        async with aclosing(feed.watch()) as first:
            await anext(first)
            with pytest.raises(OverloadedError, match="the limit is 1"):
                await anext(feed.watch())
        async with aclosing(feed.watch()) as second:
            await anext(second)

    run(scenario)


def test_close_ends_all_watches():
    async def scenario():
        feed = feed_of(ScriptedBroker())
        async with aclosing(feed.watch()) as events:
            await anext(events)
            feed.close()
            with pytest.raises(StoreUnavailableError, match="the server is closing"):
                await anext(events)
        with pytest.raises(StoreUnavailableError):
            await anext(feed.watch())

    run(scenario)


partition_owners = st.dictionaries(
    st.builds(Partition, st.sampled_from(["a", "b"]), st.integers(0, 3)),
    st.builds(PartitionOwner, st.integers(0, 2), st.integers(0, 3), st.none() | st.integers(0, 2)),
)


@given(partition_owners, partition_owners)
def test_changes_lead_from_one_state_to_the_next(before, after):
    known = {partition: owner.broker_id for partition, owner in before.items()}
    for event in changes(before, after):
        partition = Partition.of(event.partition)
        if event.status == "released":
            assert known.pop(partition) == int(event.broker_id)
        else:
            assert partition not in known or known[partition] == int(event.broker_id)
            known[partition] = int(event.broker_id)
            assert event.epoch == after[partition].epoch
    assert known == {partition: owner.broker_id for partition, owner in after.items()}
    assert not list(changes(after, after))
