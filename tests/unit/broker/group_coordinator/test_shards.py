"""Shards are opened, released and dropped: what a coordinator serves, and when."""

import asyncio

import pytest

from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
    StoreUnavailableError,
)
from kafscale.metadata.schema.model import shard_of
from unit.broker.group_coordinator.nodes import (
    GROUP,
    OTHER,
    ClassicMember,
    ConsumerMember,
    simulate,
    stabilize,
)
from unit.broker.group_coordinator.shard_guards import assign_shards, assigned, request_move

SHARD = shard_of(GROUP)


async def responses(node):
    """The error types of all requests for a group."""

    async def described():
        node.groups.describe(GROUP)

    async def fetched():
        node.groups.fetch(GROUP, None, -1)

    async def committed():
        await node.commit(1)

    requests = [
        ClassicMember("a").join(node),
        ClassicMember("a").heartbeat(node),
        ClassicMember("a").sync(node, {}),
        ConsumerMember("a").heartbeat(node, joins=True),
        described(),
        fetched(),
        committed(),
        node.groups.delete(GROUP),
        node.groups.delete_offsets(GROUP, []),
    ]
    return {type(each) for each in await asyncio.gather(*requests, return_exceptions=True)}


# --- opening ------------------------------------------------------------------------------------


def test_groups_of_other_shards_are_rejected():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(OTHER)
        assert await responses(node) == {NotCoordinatorError}
        assert node.shards.served == {shard_of(OTHER)}
        await node.commit(1, OTHER)

    simulate(body)


def test_requests_fail_with_loading_error_while_a_shard_loads():
    async def body(cluster):
        node = await cluster.node()
        guards = await assign_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.open.clear()
        opening = asyncio.create_task(node.shards.open(guards))
        await asyncio.sleep(1)
        assert await responses(node) == {CoordinatorLoadingError}
        assert node.shards.served == set()
        with pytest.raises(CoordinatorLoadingError):
            node.groups.list()
        cluster.store.open.set()
        await opening
        assert node.shards.served == {SHARD}
        assert node.groups.list() == []
        await node.commit(1)

    simulate(body)


def test_shard_is_not_served_if_loading_fails():
    async def body(cluster):
        node = await cluster.node()
        guards = await assign_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.is_unavailable = True
        with pytest.raises(StoreUnavailableError):
            await node.shards.open(guards)
        assert await responses(node) == {NotCoordinatorError}
        cluster.store.is_unavailable = False
        await node.shards.open(guards)
        await node.commit(1)

    simulate(body)


@pytest.mark.parametrize("how", ["dropped", "dropped alone", "released", "cancelled"])
def test_shard_lost_while_loading_is_not_served(how):
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await node.commit(5)
        node.shards.drop_all()
        guards = await assign_shards(cluster.store, 1, 1, [SHARD])
        cluster.store.open.clear()
        opening = asyncio.create_task(node.shards.open(guards))
        await asyncio.sleep(1)
        match how:
            case "dropped":
                node.shards.drop_all()
            case "dropped alone":
                node.shards.drop([SHARD])
            case "released":
                await node.shards.release([SHARD])
            case "cancelled":
                opening.cancel()
        cluster.store.open.set()
        await asyncio.wait([opening])
        assert node.shards.served == set()
        assert list(node.groups.registry) == []
        assert await responses(node) == {NotCoordinatorError}

    simulate(body)


def test_shard_that_returns_is_loaded_again():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.open_shards_of(GROUP)
        await first.commit(1)
        await second.open_shards_of(GROUP)
        await second.commit(2)
        # The first node did not notice that it lost the shard: it wrote nothing meanwhile.
        assert first.committed() == {0: 1}
        await first.open_shards_of(GROUP)
        assert first.committed() == {0: 2}
        await first.commit(3)
        assert first.committed() == {0: 3}

    simulate(body)


# --- releasing and dropping ---------------------------------------------------------------------


def test_release_completes_writes_and_redirects_waiting_clients():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.open_shards_of(GROUP, OTHER)
        member = ClassicMember("a")
        await stabilize(first, member)
        joining = asyncio.create_task(ClassicMember("b").join(first))
        await asyncio.sleep(0)
        committing = first.commit(5, OTHER)
        await first.shards.release([SHARD, shard_of(OTHER)])
        await committing
        with pytest.raises(NotCoordinatorError):
            await joining
        assert await responses(first) == {NotCoordinatorError}
        assert first.groups.list() == []
        await second.open_shards_of(GROUP, OTHER)
        assert second.committed(OTHER) == {0: 5}
        assert second.groups.describe(GROUP).generation == member.generation

    simulate(body)


def test_release_waits_for_the_store_and_rejects_requests():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        cluster.store.is_unavailable = True
        committing = asyncio.ensure_future(node.commit(5))
        releasing = asyncio.create_task(node.shards.release([SHARD]))
        await asyncio.sleep(2)
        assert not releasing.done()
        assert await responses(node) == {NotCoordinatorError}
        cluster.store.is_unavailable = False
        await releasing
        await committing
        assert await cluster.store.stored()

    simulate(body)


@pytest.mark.parametrize("how", ["dropped", "cancelled"])
def test_aborted_release_writes_nothing_more(how):
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        cluster.store.is_unavailable = True
        committing = asyncio.ensure_future(node.commit(5))
        releasing = asyncio.create_task(node.shards.release([SHARD]))
        await asyncio.sleep(1)
        if how == "dropped":
            node.shards.drop_all()
            await releasing
        else:
            releasing.cancel()
        with pytest.raises(NotCoordinatorError):
            await committing
        cluster.store.is_unavailable = False
        await asyncio.sleep(30)
        assert await cluster.store.stored() == {}

    simulate(body)


def test_release_does_not_affect_other_shards():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP, OTHER)
        await node.commit(5, OTHER)
        await stabilize(node, ClassicMember("a"))
        await node.shards.release([SHARD])
        assert node.shards.served == {shard_of(OTHER)}
        assert node.committed(OTHER) == {0: 5}
        assert [record.group_id for record in node.groups.list()] == [OTHER]

    simulate(body)


def test_drop_discards_writes_and_fails_waiting_clients():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP, OTHER)
        await stabilize(node, ClassicMember("a"))
        joining = asyncio.create_task(ClassicMember("b").join(node))
        await asyncio.sleep(1)
        before = await cluster.store.stored()
        cluster.store.is_unavailable = True
        waiting = [asyncio.ensure_future(node.commit(number, OTHER)) for number in range(3)]
        await asyncio.sleep(1)
        node.shards.drop_all()
        ends = await asyncio.gather(joining, *waiting, return_exceptions=True)
        assert {type(end) for end in ends} == {NotCoordinatorError}
        assert node.shards.served == set()
        cluster.store.is_unavailable = False
        await asyncio.sleep(60)
        assert await cluster.store.stored() == before

    simulate(body)


@pytest.mark.parametrize("how", ["dropped", "released"])
def test_timers_of_unloaded_groups_are_stopped(how):
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await ConsumerMember("a").heartbeat(node, joins=True)
        [runtime] = node.groups.registry
        if how == "dropped":
            node.shards.drop_all()
        else:
            await node.shards.release([SHARD])
        await asyncio.sleep(300)
        assert set(runtime.group.record().members) == {"a"}

    simulate(body)


def test_next_session_continues_with_the_stored_group():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        member = ClassicMember("a")
        await stabilize(node, member)
        node.shards.drop_all()
        await node.open_shards_of(GROUP)
        await member.heartbeat(node)

    simulate(body)


# --- leases and assignments ---------------------------------------------------------------------


def test_requests_are_rejected_while_the_lease_is_not_valid():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await node.commit(5)
        node.lease_is_valid = False
        assert await responses(node) == {NotCoordinatorError}
        with pytest.raises(CoordinatorUnavailableError):
            node.groups.list()
        node.lease_is_valid = True
        assert node.committed() == {0: 5}

    simulate(body)


def test_members_do_not_expire_while_the_lease_is_not_valid():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        member = ClassicMember("a")
        await stabilize(node, member)
        node.lease_is_valid = False
        await asyncio.sleep(300)
        node.lease_is_valid = True
        await asyncio.sleep(8)
        await member.heartbeat(node)
        await asyncio.sleep(11)
        assert node.groups.describe(GROUP).state == "Empty"

    simulate(body)


def test_updated_guard_avoids_a_failed_transaction():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        node.shards.update(SHARD, await request_move(cluster.store, SHARD, 2))
        await node.commit(5)
        assert cluster.store.rejected == 0

    simulate(body)


def test_older_assignment_is_ignored():
    async def body(cluster):
        node = await cluster.node()
        await assign_shards(cluster.store, 2, 1, [SHARD])
        old = await assigned(cluster.store, SHARD)
        await node.open_shards_of(GROUP)
        node.shards.update(SHARD, old)
        await node.commit(5)
        assert cluster.store.rejected == 0
        node.shards.update(shard_of(OTHER), old)
        assert node.shards.served == {SHARD}

    simulate(body)


def test_assignment_to_another_broker_ends_the_session():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await node.commit(5)
        await assign_shards(cluster.store, 2, 1, [SHARD])
        node.shards.update(SHARD, await assigned(cluster.store, SHARD))
        assert node.shards.served == set()
        assert await responses(node) == {NotCoordinatorError}

    simulate(body)
