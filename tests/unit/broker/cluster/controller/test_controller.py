"""The controller: it is elected, and then everything belongs to somebody who lives."""

import asyncio

import pytest
import structlog

from kafscale.errors import InvalidRequestError, StoreUnavailableError
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from unit.broker.cluster.council import TTL_MS, play


def test_a_single_broker_is_controller_and_owns_everything():
    async def body(council):
        await council.topic("orders", 6)
        await council.seat(1)
        assert await council.settled() < 0.1
        assert council.controllers == [1]
        assert council.view.controller_id == 1
        assert set(council.owners("orders").values()) == {1}
        assert len(council.owners(SHARDS_TOPIC)) == SHARD_COUNT

    play(body)


def test_nothing_is_assigned_before_restored_metadata_are_settled():
    async def body(council):
        await council.topic("orders", 6)
        elected = []
        seat = await council.seat(1)
        seat.restorer.seconds = 5
        seat.restorer.failures = [RuntimeError("a fault of ours"), StoreUnavailableError("not now")]
        seat.controller.on_elected(lambda: elected.append(seat.controller.is_governing))
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(14)
        assert council.controllers == [1]
        assert (council.owners("orders"), elected, seat.restorer.terms) == ({}, [], [])
        assert [line["event"] for line in logs if line.get("duty") == "restore"] == [
            "controller duty not done yet",
            "controller duty failed",
        ]
        await council.settled(10)
        assert (elected, len(seat.restorer.terms)) == ([True], 1)
        await seat.leave()
        await asyncio.sleep(0.1)
        assert not seat.controller.is_governing

    play(body)


def test_a_term_can_end_while_restored_metadata_are_being_settled():
    async def body(council):
        await council.topic("orders", 6)
        first = await council.seat(1)
        first.restorer.seconds = 3600
        await asyncio.sleep(1)
        second = await council.seat(2)
        await first.leave()
        await council.settled()
        assert council.controllers == [2]
        assert (first.restorer.terms, len(second.restorer.terms)) == ([], 1)

    play(body)


def test_a_new_topic_is_owned_at_once():
    async def body(council):
        for number in (1, 2, 3):
            await council.seat(number)
        await council.settled()
        for _ in range(10):
            await asyncio.sleep(0.1)
            await council.hand_over()
        await council.topic("orders", 9)
        assert await council.settled() < 0.05
        assert sorted(council.owners("orders").values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        await council.catalog.grow("orders", 12)
        assert await council.settled() < 0.05
        assert sorted(council.owners("orders").values()) == [1] * 4 + [2] * 4 + [3] * 4

    play(body)


def test_when_the_controller_is_lost_another_follows_and_gives_its_partitions_away():
    async def body(council):
        await council.topic("orders", 30)
        for number in (1, 2, 3):
            await council.seat(number)
            await asyncio.sleep(0.01)
        await council.levelled()
        lost = council.controller
        before = dict(council.view.assignments("orders"))
        await lost.leave()
        assert await council.settled() < 0.1
        assert council.controller is not lost
        assert council.controller.streams.fences == [(lost.broker_id, 1)]
        for number, found in council.view.assignments("orders").items():
            was_lost = before[number].broker_id == lost.broker_id
            assert found.leader_epoch == before[number].leader_epoch + was_lost
            assert found.fully_rolled != was_lost
            assert (found == before[number]) != was_lost

    play(body)


def test_who_is_silent_is_lost_when_its_lease_ends():
    async def body(council):
        await council.topic("orders", 4)
        await council.seat(1)
        await council.settled()
        silent = await council.seat(2)
        await asyncio.sleep(1)
        await council.hand_over()
        await council.settled()
        assert 2 in council.owners("orders").values()
        silent.registration = None  # Nobody keeps its lease alive any more.
        await asyncio.sleep(TTL_MS / 1000 - 1)
        assert 2 in council.owners("orders").values()
        await asyncio.sleep(1.1)
        assert await council.settled() < 0.1
        assert set(council.owners("orders").values()) == {1}

    play(body, moves_max=100)


def test_who_is_back_under_a_new_epoch_keeps_what_it_had():
    async def body(council):
        await council.topic("orders", 4)
        seat = await council.seat(1)
        await council.settled()
        await seat.leave()
        await asyncio.sleep(0.5)
        assert council.controllers == []
        await seat.join()
        await council.settled()
        assert council.controllers == [1]
        assert seat.streams.fences == [(1, 1)]
        for found in council.view.assignments("orders").values():
            assert (found.broker_epoch, found.leader_epoch, found.fully_rolled) == (2, 1, False)

    play(body)


def test_a_broker_that_joins_is_filled_by_moves_of_which_few_are_under_way():
    async def body(council):
        await council.topic("orders", 20)
        await council.seat(1)
        await council.settled()
        await council.seat(2)
        moved = 0
        for _ in range(100):
            await asyncio.sleep(0.1)
            handed_over = await council.hand_over()
            assert handed_over <= 3
            moved += handed_over
        assert moved == 10 + 25
        assert council.is_settled()

    play(body, moves_max=3)


def test_whoever_waits_for_the_election_is_called():
    async def body(council):
        seat = await council.seat(1)
        told = []
        seat.controller.on_elected(lambda: told.append(seat.controller.is_controller))
        await council.settled()
        assert told == [True]
        await seat.leave()
        await seat.join()
        await council.settled()
        assert told == [True, True]

    play(body)


def test_changes_of_topics_are_told_once_they_have_been_gathered():
    async def body(council):
        told = []
        failures = [OSError("not now")]

        async def listen(topics):
            told.append(sorted(topics))
            if failures:
                raise failures.pop()

        seat = await council.seat(1)
        seat.controller.on_topics_changed(listen)
        await asyncio.sleep(50)
        await council.topic("orders", 1)
        await asyncio.sleep(9)
        assert told == []
        await asyncio.sleep(2)
        assert told == [["orders"]]
        await asyncio.sleep(61)
        assert told == [["orders"]] * 2, "it failed the first time"
        await asyncio.sleep(500)
        assert len(told) == 2
        await council.topic("payments", 1)
        await asyncio.sleep(61)
        assert told[2:] == [["orders", "payments"]]

    play(body)


def test_topics_are_published_at_once_and_again_until_that_succeeds():
    async def body(council):
        told = []
        failures = [StoreUnavailableError("not now")]

        async def listen(topics):
            if failures:
                raise failures.pop()
            told.append(sorted(topics))

        seat = await council.seat(1)
        seat.controller.on_publish(listen)
        await council.topic("orders", 1)
        await asyncio.sleep(5)
        assert told[-1] == ["orders"]
        assert failures == []

    play(body)


def test_rebalancing_on_demand_tells_how_many_moves_are_under_way():
    async def body(council):
        await council.topic("orders", 20)
        first = await council.seat(1)
        await council.settled()
        assert await first.controller.rebalance() == 0
        second = await council.seat(2)
        await asyncio.sleep(0.1)
        assert await first.controller.rebalance() == 4
        with pytest.raises(InvalidRequestError, match="broker 2 is not the controller, 1 is"):
            await second.controller.rebalance()

    play(body, moves_max=4)


def test_what_happens_is_logged_in_constant_phrases():
    async def body(council):
        await council.topic("orders", 6)
        await council.seat(1)
        await council.settled()
        lost = await council.seat(2)
        await asyncio.sleep(0.1)
        await council.hand_over()
        await asyncio.sleep(0.1)
        await lost.leave()
        await council.settled()

    with structlog.testing.capture_logs() as logs:
        play(body, moves_max=100)
    told = [entry for entry in logs if entry["event"] != "partitions moving"]
    assert [entry["event"] for entry in told[:2]] == ["controller elected", "partitions assigned"]
    assert (told[1]["partitions"], told[1]["shards"]) == (6, 50)
    [moving] = [entry for entry in logs if entry["event"] == "partitions moving"]
    assert (moving["partitions"], moving["shards"]) == (3, 25)
    [lost] = [entry for entry in logs if entry["event"] == "broker lost"]
    assert (lost["broker_id"], lost["epoch"], lost["partitions"]) == (2, 1, 3)
