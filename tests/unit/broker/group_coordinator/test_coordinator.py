"""The coordinator: what survives a restart of the broker, and what expires."""

import asyncio
from random import Random

import pytest

from doubles import virtual_time
from kafscale.config import Config
from kafscale.config.sections.groups import Group, Offsets
from kafscale.config.sections.s3 import S3
from kafscale.errors import (
    CoordinatorUnavailableError,
    GroupNotFoundError,
    IllegalGenerationError,
    NonEmptyGroupError,
    NotCoordinatorError,
    StoreUnavailableError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.consumer_protocol import Subscription, encode_assignment, encode_subscription
from kafscale.groups.model import GroupType
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.protocol.error_codes import ErrorCode
from unit.broker.handlers.group_members import GROUP, ConsumerMember, Member, form_generation
from unit.broker.in_memory_broker import CONFIG, Stores, run_with_broker, running_broker

QUICK = Config(s3=S3(use_memory=True), offsets=Offsets(retention_minutes=60))


def commit(broker, *partitions, group_id=GROUP, offset=5, **fields):
    """Commit as a consumer that assigns partitions to itself."""
    topic = broker.services.topic_store.topics["orders"]
    committed = CommittedOffset(
        **{
            "offset": offset,
            "committed_ms": virtual_time.clock_ms(),
            "topic_id": topic.id,
            **fields,
        }
    )
    offsets = {("orders", partition): committed for partition in partitions}
    return broker.services.groups.commit(
        group_id, "", None, -1, offsets, version_knows_missing_groups=True
    )


def committed(broker, group_id=GROUP):
    fetched = broker.services.groups.fetch(group_id, None, -1)
    return {topic_partition: offset.offset for topic_partition, offset in fetched.items()}


def sessions(*bodies, config=CONFIG):
    """Run each body in its own broker session, over the same stores."""

    async def scenario(_random: Random) -> None:
        stores = Stores()
        for body in bodies:
            async with running_broker(stores, config) as broker:
                await body(broker)

    virtual_time.run(scenario, seed=0)


# --- restarts -----------------------------------------------------------------------------------


def test_restart_causes_no_rebalance_for_members_that_return_in_time():
    members = []

    async def before(broker):
        await broker.topic("orders", 3)
        members.extend([Member(broker), Member(broker, instance_id="static")])
        await form_generation(*members)

    async def after(broker):
        record = broker.services.groups.describe(GROUP)
        assert (record.state, len(record.members)) == ("Stable", 2)
        for member in members:
            member.broker = broker
        for _ in range(10):
            await asyncio.sleep(3)
            assert [await member.heartbeat() for member in members] == [ErrorCode.NONE] * 2
        assert broker.services.groups.describe(GROUP).generation == record.generation

    sessions(before, after)


def test_members_that_do_not_return_expire():
    async def before(broker):
        await form_generation(Member(broker), Member(broker))

    async def after(broker):
        await asyncio.sleep(11)
        record = broker.services.groups.describe(GROUP)
        assert (record.state, dict(record.members)) == ("Empty", {})

    sessions(before, after)


def test_consumer_group_survives_a_restart():
    members = []

    async def before(broker):
        await broker.topic("orders", 3)
        members.append(ConsumerMember(broker, "newer"))
        await members[0].join("orders")

    async def after(broker):
        record = broker.services.groups.describe(GROUP)
        assert (record.group_type, len(record.members)) == (GroupType.CONSUMER, 1)
        [member] = members
        member.broker = broker
        epoch = member.epoch
        await member.confirm()
        assert member.epoch == epoch

    sessions(before, after)


def test_committed_offsets_survive_and_create_a_group():
    async def before(broker):
        await broker.topic("orders", 3)
        await commit(broker, 0, 2, metadata="so far", leader_epoch=3)

    async def after(broker):
        fetched = broker.services.groups.fetch(GROUP, None, -1)
        assert set(fetched) == {("orders", 0), ("orders", 2)}
        offset = fetched["orders", 0]
        assert (offset.offset, offset.metadata, offset.leader_epoch) == (5, "so far", 3)
        assert broker.services.groups.describe(GROUP).state == "Empty"

    sessions(before, after)


def test_damaged_records_do_not_affect_other_groups():
    async def before(broker):
        await broker.topic("orders", 3)
        await commit(broker, 0)
        garbage = [
            Put(keys.consumer_group("broken"), b"\xff\xff"),
            Put(keys.committed_offset(GROUP, "orders", 1), b"\xff"),
            Put(keys.CONSUMERS + "what/is/this", b""),
        ]
        await broker.stores.metadata.commit((), garbage)

    async def after(broker):
        assert committed(broker) == {("orders", 0): 5}
        with pytest.raises(GroupNotFoundError):
            broker.services.groups.describe("broken")

    sessions(before, after)


# --- commits ------------------------------------------------------------------------------------


def test_offset_is_readable_once_it_is_in_the_store():
    async def body(broker):
        await broker.topic("orders")
        waiting = asyncio.ensure_future(commit(broker, 0))
        await asyncio.sleep(0)
        assert committed(broker) == {}
        await waiting
        assert committed(broker) == {("orders", 0): 5}

    run_with_broker(body)


def test_concurrent_commits_share_a_transaction():
    async def body(broker):
        await broker.topic("orders", 50)
        writer = broker.services.shards.writer
        before = writer.transactions
        await asyncio.gather(
            *(commit(broker, number, group_id=str(number)) for number in range(50))
        )
        assert writer.transactions - before == 1

    run_with_broker(body)


def test_heartbeat_writes_nothing():
    async def body(broker):
        members = [Member(broker), Member(broker)]
        await form_generation(*members)
        before = broker.services.shards.writer.transactions
        for _ in range(20):
            await asyncio.sleep(3)
            assert [await member.heartbeat() for member in members] == [ErrorCode.NONE] * 2
        assert broker.services.shards.writer.transactions == before

    run_with_broker(body)


def test_members_do_not_expire_while_the_store_is_unavailable():
    async def body(broker):
        await broker.topic("orders")
        member = Member(broker)
        await form_generation(member)
        real = broker.stores.metadata.commit

        async def refuse(_compares, _operations):
            raise StoreUnavailableError("unavailable")

        broker.stores.metadata.commit = refuse
        with pytest.raises(CoordinatorUnavailableError):
            await commit(broker, 0, group_id="another")
        await asyncio.sleep(60)
        broker.stores.metadata.commit = real
        await asyncio.sleep(15)
        assert committed(broker, "another") == {("orders", 0): 5}
        assert await member.heartbeat() == ErrorCode.NONE

    run_with_broker(body)


def test_commit_for_an_unknown_group_fails():
    async def body(broker):
        groups = broker.services.groups
        with pytest.raises(GroupNotFoundError):
            groups.commit("none", "me", None, 3, {}, version_knows_missing_groups=True)
        with pytest.raises(IllegalGenerationError):
            groups.commit("none", "me", None, 3, {}, version_knows_missing_groups=False)
        assert groups.fetch("none", "me", 3) == {}
        assert groups.fetch("none", None, -1) == {}
        await groups.commit("none", "", None, -1, {}, version_knows_missing_groups=True)
        assert groups.list() == []

    run_with_broker(body)


# --- deletion and expiration --------------------------------------------------------------------


def test_offsets_of_a_deleted_topic_are_deleted():
    async def before(broker):
        await broker.topic("orders", 2)
        await broker.topic("kept")
        await commit(broker, 0, 1)
        topic = broker.services.topic_store.topics["kept"]
        kept = CommittedOffset(offset=9, committed_ms=1, topic_id=topic.id)
        await broker.services.groups.commit(
            GROUP, "", None, -1, {("kept", 0): kept}, version_knows_missing_groups=True
        )
        await broker.services.topic_store.delete("orders")
        await asyncio.sleep(1)
        assert committed(broker) == {("kept", 0): 9}

    async def after(broker):
        assert committed(broker) == {("kept", 0): 9}

    sessions(before, after)


def test_offsets_of_a_topic_deleted_while_stopped_are_deleted():
    async def before(broker):
        await broker.topic("orders", 2)
        await commit(broker, 0, topic_id=b"of another time.")
        await commit(broker, 1)

    async def after(broker):
        await asyncio.sleep(1)
        assert committed(broker) == {("orders", 1): 5}

    sessions(before, after, after)


def test_expired_offsets_are_deleted_with_their_group():
    async def body(broker):
        await broker.topic("orders", 3)
        await commit(broker, 0)
        await asyncio.sleep(1800)
        await commit(broker, 1)
        await asyncio.sleep(2400)
        assert committed(broker) == {("orders", 1): 5}
        await asyncio.sleep(2400)
        assert broker.services.groups.list() == []
        assert (await broker.stores.metadata.range(keys.CONSUMERS)).entries == ()

    run_with_broker(body, config=QUICK)


def test_offsets_of_subscribed_topics_do_not_expire():
    async def body(broker):
        await broker.topic("orders")
        await commit(broker, 0)
        member = Member(broker)
        await form_generation(member)
        for _ in range(2400):
            await asyncio.sleep(3)
            assert await member.heartbeat() == ErrorCode.NONE
        assert committed(broker) == {("orders", 0): 5}
        await member.leave()
        await asyncio.sleep(3000)
        assert committed(broker) == {("orders", 0): 5}
        await asyncio.sleep(1500)
        assert broker.services.groups.list() == []

    run_with_broker(body, config=QUICK)


def test_commit_with_its_own_retention_time():
    async def body(broker):
        await broker.topic("orders", 2)
        await commit(broker, 0, expires_ms=virtual_time.clock_ms() + 7_200_000)
        await commit(broker, 1)
        await asyncio.sleep(7_000)
        assert committed(broker) == {("orders", 0): 5}
        await asyncio.sleep(1200)
        assert broker.services.groups.list() == []

    run_with_broker(body, config=QUICK)


# --- creation, deletion and group types ---------------------------------------------------------


def test_deleted_group_leaves_no_records_and_can_be_recreated():
    async def before(broker):
        await broker.topic("orders")
        member = Member(broker)
        await form_generation(member)
        groups = broker.services.groups
        with pytest.raises(NonEmptyGroupError):
            await groups.delete(GROUP)
        await member.leave()
        waiting = asyncio.ensure_future(commit(broker, 0))
        await asyncio.sleep(0)
        await groups.delete(GROUP)
        await waiting
        assert (await broker.stores.metadata.range(keys.CONSUMERS)).entries == ()
        with pytest.raises(GroupNotFoundError):
            await groups.delete(GROUP)
        await commit(broker, 0, offset=7)

    async def after(broker):
        assert committed(broker) == {("orders", 0): 7}

    sessions(before, after)


def test_rejected_join_creates_no_group():
    async def body(broker):
        response = await Member(broker).send_join(session_timeout_ms=1)
        assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert broker.services.groups.list() == []

    run_with_broker(body)


def test_empty_group_takes_the_type_of_the_next_member():
    async def body(broker):
        await broker.topic("orders")
        await commit(broker, 0)
        newer = ConsumerMember(broker, "newer")
        await newer.join("orders")
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CONSUMER
        await newer.ask(member_epoch=-1)
        classic = Member(broker)
        await form_generation(classic)
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CLASSIC
        assert committed(broker) == {("orders", 0): 5}

    run_with_broker(body)


def test_upgrade_is_rejected_if_disabled():
    async def body(broker):
        await form_generation(Member(broker))
        response = await ConsumerMember(broker, "newer").ask(
            rebalance_timeout_ms=1_000, subscribed_topic_names=["orders"], owned_partitions=[]
        )
        assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CLASSIC

    disabled = Config(s3=S3(use_memory=True), group=Group(consumer_migration_policy="disabled"))
    run_with_broker(body, config=disabled)


def test_upgrade_happens_only_for_an_accepted_member():
    async def body(broker):
        await broker.topic("orders", 2)
        wishes = encode_subscription(Subscription(topics=("orders",)))
        classic = Member(broker, metadata=wishes)
        await form_generation(classic, assignment=encode_assignment({"orders": (0, 1)}))
        newer = ConsumerMember(broker, "newer")
        joining = {
            "rebalance_timeout_ms": 1_000,
            "subscribed_topic_names": ["orders"],
            "owned_partitions": [],
        }
        response = await newer.ask(server_assignor="unheard-of", **joining)
        assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CLASSIC
        assert await classic.heartbeat() == ErrorCode.NONE
        await newer.heartbeat(**joining)
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CONSUMER
        assert await classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        await newer.ask(member_epoch=-1)
        assert broker.services.groups.describe(GROUP).group_type is GroupType.CLASSIC

    run_with_broker(body)


def test_waiting_clients_are_redirected_on_shutdown():
    async def body(broker):
        joining = asyncio.create_task(Member(broker).send_join(version=3))
        await asyncio.sleep(0.1)
        groups = broker.services.groups
        groups.shut_down()
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(NotCoordinatorError):
            groups.describe(GROUP)

    run_with_broker(body)


def test_unknown_group_has_no_members():
    async def body(broker):
        member = Member(broker)
        member.member_id = "me"
        assert await member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert (await member.send_join()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert broker.services.groups.list() == []

    run_with_broker(body)


# --- metrics ------------------------------------------------------------------------------------


def test_metrics_of_group_states_and_lag():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1, 2, 3)
        await commit(broker, 0, offset=1)
        await form_generation(Member(broker, group_id="busy"))
        text = broker.services.metrics.exposition().decode()
        assert 'kafscale_consumer_lag{group="readers",topic="orders",partition="0"} 2\n' in text
        assert 'kafscale_consumer_groups{state="Empty"} 1\n' in text
        assert 'kafscale_consumer_groups{state="Stable"} 1\n' in text
        assert 'kafscale_consumer_commits_total{group="readers"} 1\n' in text
        assert 'kafscale_consumer_rebalances_total{group="busy"} 1\n' in text

    run_with_broker(body)
