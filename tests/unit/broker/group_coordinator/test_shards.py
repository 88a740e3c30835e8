"""Shards that come to a coordinator and go from it: what it answers for, and when."""

import asyncio

import pytest

from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
    StoreUnavailableError,
)
from kafscale.metadata.cluster.group_shards import shard_of
from unit.broker.group_coordinator.claiming import ask_to_move, assigned, claim_shards
from unit.broker.group_coordinator.nodes import GROUP, OTHER, Classic, Consumer, play, settle

SHARD = shard_of(GROUP)


async def asked_of_all(node):
    """What a group's verbs say no with."""

    async def described():
        node.groups.describe(GROUP)

    async def fetched():
        node.groups.fetch(GROUP, None, -1)

    async def committed():
        await node.commit(1)

    asked = [
        Classic("a").join(node),
        Classic("a").heartbeat(node),
        Classic("a").sync(node, {}),
        Consumer("a").beat(node, joins=True),
        described(),
        fetched(),
        committed(),
        node.groups.delete(GROUP),
        node.groups.delete_offsets(GROUP, []),
    ]
    return {type(each) for each in await asyncio.gather(*asked, return_exceptions=True)}


# --- coming -------------------------------------------------------------------------------------


def test_groups_of_other_shards_are_somebody_elses():
    async def body(cluster):
        node = await cluster.node()
        await node.take(OTHER)
        assert await asked_of_all(node) == {NotCoordinatorError}
        assert not node.groups.is_coordinator_of(GROUP)
        assert node.groups.is_coordinator_of(OTHER)
        assert node.groups.shards == {shard_of(OTHER)}
        await node.commit(1, OTHER)

    play(body)


def test_clients_are_told_that_a_group_is_loading():
    async def body(cluster):
        node = await cluster.node()
        guards = await claim_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.open.clear()
        opening = asyncio.create_task(node.groups.open_shards(guards))
        await asyncio.sleep(1)
        assert await asked_of_all(node) == {CoordinatorLoadingError}
        assert node.groups.is_coordinator_of(GROUP)
        assert node.groups.shards == set()
        with pytest.raises(CoordinatorLoadingError):
            node.groups.list()
        cluster.store.open.set()
        await opening
        assert node.groups.shards == {SHARD}
        assert node.groups.list() == []
        await node.commit(1)

    play(body)


def test_what_the_store_does_not_tell_is_not_served():
    async def body(cluster):
        node = await cluster.node()
        guards = await claim_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.is_away = True
        with pytest.raises(StoreUnavailableError):
            await node.groups.open_shards(guards)
        assert await asked_of_all(node) == {NotCoordinatorError}
        assert not node.groups.is_coordinator_of(GROUP)
        cluster.store.is_away = False
        await node.groups.open_shards(guards)
        await node.commit(1)

    play(body)


@pytest.mark.parametrize("how", ["dropped", "dropped alone", "released", "cancelled"])
def test_what_goes_while_it_is_being_read_is_not_served(how):
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        await node.commit(5)
        node.groups.drop_shards()
        guards = await claim_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.open.clear()
        opening = asyncio.create_task(node.groups.open_shards(guards))
        await asyncio.sleep(1)
        match how:
            case "dropped":
                node.groups.drop_shards()
            case "dropped alone":
                node.groups.drop_shard(SHARD)
            case "released":
                await node.groups.release_shards([SHARD])
            case "cancelled":
                opening.cancel()
        cluster.store.open.set()
        await asyncio.wait([opening])
        assert node.groups.shards == set()
        assert list(node.groups.directory) == []
        assert await asked_of_all(node) == {NotCoordinatorError}

    play(body)


def test_a_shard_that_was_away_in_between_is_read_again():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.take(GROUP)
        await first.commit(1)
        await second.take(GROUP)
        await second.commit(2)
        # The first did not notice that the shard was away: nothing was written here meanwhile.
        assert first.committed() == {0: 1}
        await first.take(GROUP)
        assert first.committed() == {0: 2}
        await first.commit(3)
        assert first.committed() == {0: 3}

    play(body)


# --- going --------------------------------------------------------------------------------------


def test_what_is_released_has_reached_the_store_and_who_waits_is_sent_elsewhere():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.take(GROUP, OTHER)
        member = Classic("a")
        await settle(first, member)
        joining = asyncio.create_task(Classic("b").join(first))
        await asyncio.sleep(0)
        committing = first.commit(5, OTHER)
        await first.groups.release_shards([SHARD, shard_of(OTHER)])
        await committing
        with pytest.raises(NotCoordinatorError):
            await joining
        assert await asked_of_all(first) == {NotCoordinatorError}
        assert first.groups.list() == []
        await second.take(GROUP, OTHER)
        assert second.committed(OTHER) == {0: 5}
        assert second.groups.describe(GROUP).generation == member.generation

    play(body)


def test_a_release_waits_for_the_store_and_answers_nobody_meanwhile():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        cluster.store.is_away = True
        committing = asyncio.ensure_future(node.commit(5))
        releasing = asyncio.create_task(node.groups.release_shards([SHARD]))
        await asyncio.sleep(2)
        assert not releasing.done()
        assert not node.groups.is_coordinator_of(GROUP)
        assert await asked_of_all(node) == {NotCoordinatorError}
        cluster.store.is_away = False
        await releasing
        await committing
        assert await cluster.store.knows()

    play(body)


@pytest.mark.parametrize("how", ["dropped", "cancelled"])
def test_a_release_that_comes_to_nothing_writes_nothing_any_more(how):
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        cluster.store.is_away = True
        committing = asyncio.ensure_future(node.commit(5))
        releasing = asyncio.create_task(node.groups.release_shards([SHARD]))
        await asyncio.sleep(1)
        if how == "dropped":
            node.groups.drop_shards()
            await releasing
        else:
            releasing.cancel()
        with pytest.raises(NotCoordinatorError):
            await committing
        cluster.store.is_away = False
        await asyncio.sleep(30)
        assert await cluster.store.knows() == {}

    play(body)


def test_other_shards_are_not_touched_by_a_release():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP, OTHER)
        await node.commit(5, OTHER)
        await settle(node, Classic("a"))
        await node.groups.release_shards([SHARD])
        assert node.groups.shards == {shard_of(OTHER)}
        assert node.committed(OTHER) == {0: 5}
        assert [record.group_id for record in node.groups.list()] == [OTHER]

    play(body)


def test_what_is_dropped_is_not_written_and_who_waits_is_told_at_once():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP, OTHER)
        await settle(node, Classic("a"))
        joining = asyncio.create_task(Classic("b").join(node))
        await asyncio.sleep(1)
        before = await cluster.store.knows()
        cluster.store.is_away = True
        waiting = [asyncio.ensure_future(node.commit(number, OTHER)) for number in range(3)]
        await asyncio.sleep(1)
        node.groups.drop_shards()
        ends = await asyncio.gather(joining, *waiting, return_exceptions=True)
        assert {type(end) for end in ends} == {NotCoordinatorError}
        assert node.groups.shards == set()
        cluster.store.is_away = False
        await asyncio.sleep(60)
        assert await cluster.store.knows() == before

    play(body)


@pytest.mark.parametrize("how", ["dropped", "released"])
def test_a_group_that_has_gone_is_not_looked_after_any_more(how):
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        await Consumer("a").beat(node, joins=True)
        [hosted] = node.groups.directory
        if how == "dropped":
            node.groups.drop_shards()
        else:
            await node.groups.release_shards([SHARD])
        await asyncio.sleep(300)
        assert set(hosted.group.record().members) == {"a"}

    play(body)


def test_a_new_life_begins_where_the_old_one_ended():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        member = Classic("a")
        await settle(node, member)
        node.groups.drop_shards()
        await node.take(GROUP)
        await member.heartbeat(node)

    play(body)


# --- whether it may -----------------------------------------------------------------------------


def test_who_cannot_prove_its_lease_answers_nobody():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        await node.commit(5)
        node.lease_is_valid = False
        assert await asked_of_all(node) == {NotCoordinatorError}
        with pytest.raises(CoordinatorUnavailableError):
            node.groups.list()
        node.lease_is_valid = True
        assert node.committed() == {0: 5}

    play(body)


def test_nobody_is_taken_for_dead_who_could_not_be_answered():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        member = Classic("a")
        await settle(node, member)
        node.lease_is_valid = False
        await asyncio.sleep(300)
        node.lease_is_valid = True
        await asyncio.sleep(8)
        await member.heartbeat(node)
        await asyncio.sleep(11)
        assert node.groups.describe(GROUP).state == "Empty"

    play(body)


def test_a_claim_that_is_told_of_early_costs_no_failed_transaction():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        node.groups.update_guard(SHARD, await ask_to_move(cluster.store, SHARD, 2))
        await node.commit(5)
        assert cluster.store.refused == 0

    play(body)


def test_an_assignment_of_old_is_not_taken_for_a_new_one():
    async def body(cluster):
        node = await cluster.node()
        await claim_shards(cluster.store, 2, 1, [SHARD])
        old = await assigned(cluster.store, SHARD)
        await node.take(GROUP)
        node.groups.update_guard(SHARD, old)
        await node.commit(5)
        assert cluster.store.refused == 0
        node.groups.update_guard(shard_of(OTHER), old)
        assert node.groups.shards == {SHARD}

    play(body)


def test_an_assignment_to_somebody_else_ends_it():
    async def body(cluster):
        node = await cluster.node()
        await node.take(GROUP)
        await node.commit(5)
        await claim_shards(cluster.store, 2, 1, [SHARD])
        node.groups.update_guard(SHARD, await assigned(cluster.store, SHARD))
        assert node.groups.shards == set()
        assert await asked_of_all(node) == {NotCoordinatorError}

    play(body)
