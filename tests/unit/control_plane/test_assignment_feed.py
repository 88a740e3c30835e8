"""Watching assignments: what watchers are told, in which order, and what becomes of slow ones."""

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.control_plane.assignment_feed import AssignmentFeed, Holding, changes
from kafscale.control_plane.partition import Partition
from kafscale.errors import OverloadedError, StoreUnavailableError
from unit.broker.harness import run, run_pending
from unit.control_plane.stage import ORDERS_1, ScriptedBroker, short, take


def feed_of(broker, **bounds):
    feed = AssignmentFeed(broker.holdings, **bounds)
    broker.subscribe(feed.changed)
    return feed


def test_first_comes_what_there_is_and_then_what_changes():
    async def story():
        broker = ScriptedBroker()
        broker.held[ORDERS_1] = Holding(4, 0, reassigning_to=5)
        async with aclosing(feed_of(broker).watch()) as events:
            first = [await anext(events), await anext(events)]
            assert [short(event) for event in first] == [
                "orders/0 assigned 3 @7",
                "orders/1 moving 4>5 @0",
            ]
            assert all(event.is_initial for event in first)
            broker.assign(orders_1=Holding(5, 1))
            changed = [await anext(events), await anext(events)]
            assert [short(event) for event in changed] == [
                "orders/1 released 4 @0",
                "orders/1 assigned 5 @1",
            ]
            assert not any(event.is_initial for event in changed)
            broker.assign(orders_0=None)
            assert await take(events, 1) == ["orders/0 released 3 @7"]

    run(story)


def test_who_asks_for_one_broker_hears_of_no_other():
    async def story():
        broker = ScriptedBroker()
        async with aclosing(feed_of(broker).watch("4")) as events:
            task = asyncio.ensure_future(anext(events))
            await run_pending()
            broker.assign(orders_0=Holding(5, 8))
            await run_pending()
            assert not task.done()
            broker.assign(orders_0=Holding(4, 9))
            assert short(await task) == "orders/0 assigned 4 @9"
            broker.assign(orders_0=Holding(5, 10))
            assert await take(events, 1) == ["orders/0 released 4 @9"]

    run(story)


def test_what_changes_in_one_moment_is_told_as_one():
    async def story():
        broker = ScriptedBroker()
        async with aclosing(feed_of(broker).watch()) as events:
            await anext(events)
            broker.assign(orders_0=Holding(3, 7, reassigning_to=4))
            broker.assign(orders_0=Holding(4, 8))
            assert await take(events, 2) == ["orders/0 released 3 @7", "orders/0 assigned 4 @8"]

    run(story)


def test_nobody_misses_what_happens_while_another_begins_to_watch():
    async def story():
        broker = ScriptedBroker()
        feed = feed_of(broker)
        async with aclosing(feed.watch()) as first, aclosing(feed.watch()) as second:
            await anext(first)
            broker.assign(orders_0=Holding(4, 8))
            assert await take(second, 1) == ["orders/0 assigned 4 @8"]
            assert await take(first, 2) == ["orders/0 released 3 @7", "orders/0 assigned 4 @8"]
            broker.assign(orders_0=Holding(4, 8, reassigning_to=3))
            assert await take(second, 1) == ["orders/0 moving 4>3 @8"]
            assert await take(first, 1) == ["orders/0 moving 4>3 @8"]

    run(story)


def test_one_that_does_not_read_is_cut_off_and_the_others_are_not():
    async def story():
        broker = ScriptedBroker()
        feed = feed_of(broker, events_max=4)
        async with aclosing(feed.watch()) as slow, aclosing(feed.watch()) as quick:
            await anext(slow)
            await anext(quick)
            for epoch in range(8, 13):
                broker.assign(orders_0=Holding(3, epoch))
                assert await take(quick, 1) == [f"orders/0 assigned 3 @{epoch}"]
            with pytest.raises(OverloadedError, match="too slowly"):
                await anext(slow)
            broker.assign(orders_0=Holding(3, 13))
            assert await take(quick, 1) == ["orders/0 assigned 3 @13"]

    run(story)


def test_only_so_many_may_watch_and_who_leaves_makes_room():
    async def story():
        feed = feed_of(ScriptedBroker(), watchers_max=1)
        async with aclosing(feed.watch()) as first:
            await anext(first)
            with pytest.raises(OverloadedError, match="1 watch already"):
                await anext(feed.watch())
        async with aclosing(feed.watch()) as second:
            await anext(second)

    run(story)


def test_closing_sends_everybody_away():
    async def story():
        feed = feed_of(ScriptedBroker())
        async with aclosing(feed.watch()) as events:
            await anext(events)
            feed.close()
            with pytest.raises(StoreUnavailableError, match="ask another one"):
                await anext(events)
        with pytest.raises(StoreUnavailableError):
            await anext(feed.watch())

    run(story)


holdings = st.dictionaries(
    st.builds(Partition, st.sampled_from(["a", "b"]), st.integers(0, 3)),
    st.builds(Holding, st.integers(0, 2), st.integers(0, 3), st.none() | st.integers(0, 2)),
)


@given(holdings, holdings)
def test_whoever_follows_the_changes_knows_who_holds_what(before, after):
    known = {partition: holding.broker_id for partition, holding in before.items()}
    for event in changes(before, after):
        partition = Partition.of(event.partition)
        if event.status == "released":
            assert known.pop(partition) == int(event.broker_id)
        else:
            assert partition not in known or known[partition] == int(event.broker_id)
            known[partition] = int(event.broker_id)
            assert event.epoch == after[partition].epoch
    assert known == {partition: holding.broker_id for partition, holding in after.items()}
    assert not list(changes(after, after))
