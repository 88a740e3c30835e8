"""ConsumerGroupHeartbeat: joining, reconciliation, leaving and invalid requests."""

import asyncio
import re
from itertools import chain

import pytest

from kafscale.broker.handlers.consumer_group_heartbeat import new_member_id
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    TopicPartitions,
)
from unit.broker.handlers.group_members import GROUP, ConsumerMember
from unit.broker.in_memory_broker import run_with_broker

every_version = pytest.mark.parametrize("version", CONSUMER_GROUP_HEARTBEAT.versions)

JOINING = {
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["orders"],
    "owned_partitions": [],
}


@every_version
def test_only_member_gets_all_partitions(version):
    async def body(broker):
        topic = await broker.topic("orders", 3)
        member = ConsumerMember(broker, "one")
        joined = await member.join("orders", version=version)

        assert (joined.member_id, joined.member_epoch, joined.error_message) == ("one", 1, None)
        assert joined.heartbeat_interval_ms == 5_000
        assert member.owned == {topic.id: [0, 1, 2]}
        quiet = await member.heartbeat(version=version)
        assert (quiet.member_id, quiet.member_epoch, quiet.assignment) == ("one", 1, None)

    run_with_broker(body)


def test_partitions_move_after_they_are_revoked():
    async def body(broker):
        topic = await broker.topic("orders", 4)
        first, second, third = (ConsumerMember(broker, name) for name in ("a", "b", "c"))
        await first.join("orders")
        await first.confirm()
        for other in (second, third):
            await other.join("orders")
        for _ in range(3):
            for member in (first, second, third):
                await member.confirm()

        owned = [member.owned.get(topic.id, []) for member in (first, second, third)]
        assert sorted(chain(*owned)) == [0, 1, 2, 3]
        assert sorted(map(len, owned)) == [1, 1, 2]
        assert first.epoch == second.epoch == third.epoch == 3

    run_with_broker(body)


@every_version
def test_leaving_member_releases_its_partitions(version):
    async def body(broker):
        topic = await broker.topic("orders", 2)
        first, second = ConsumerMember(broker, "a"), ConsumerMember(broker, "b")
        await first.join("orders")
        await second.join("orders")
        gone = await first.ask(version, member_epoch=-1)
        await second.heartbeat()

        assert (gone.error_code, gone.member_id, gone.member_epoch) == (0, "a", -1)
        assert gone.heartbeat_interval_ms == 0, "none is expected any more"
        assert second.owned == {topic.id: [0, 1]}
        assert (await first.ask(version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run_with_broker(body)


def test_static_member_keeps_its_partitions_when_it_rejoins():
    async def body(broker):
        topic = await broker.topic("orders", 2)
        before = ConsumerMember(broker, "a", instance_id="desk-1")
        await before.join("orders")
        await before.confirm()
        gone = await before.ask(member_epoch=-2)
        after = ConsumerMember(broker, "b", instance_id="desk-1")
        await after.join("orders")

        assert (gone.error_code, gone.member_epoch) == (ErrorCode.NONE, -2)
        assert after.owned == {topic.id: [0, 1]}
        assert after.epoch == 1

    run_with_broker(body)


def test_v0_generates_a_member_id():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "")
        await member.join("orders", version=0)

        assert re.fullmatch(r"[\w-]{22}", member.member_id)
        assert (await member.heartbeat(version=0)).member_epoch == 1

    run_with_broker(body)


def test_member_ids_do_not_begin_with_a_dash():
    created = {new_member_id() for _ in range(500)}

    assert len(created) == 500
    assert all(re.fullmatch(r"\w[\w-]{21}", each, re.ASCII) for each in created)


def test_member_has_all_fields_of_its_request():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one", instance_id="desk-1")
        await member.join(
            "orders", rack_id="b", subscribed_topic_regex="pay.*", server_assignor="range"
        )

        [result] = broker.services.groups.describe(GROUP).members.values()
        assert (result.client_id, result.client_host) == ("tester", "/10.0.0.1")
        assert (result.instance_id, result.rack_id) == ("desk-1", "b")
        assert (result.subscribed_names, result.subscribed_regex) == (("orders",), "pay.*")
        assert (result.server_assignor, result.rebalance_timeout_ms) == ("range", 60_000)
        assert not result.is_classic

    run_with_broker(body)


@every_version
@pytest.mark.parametrize(
    ("epoch", "fields", "reason"),
    [
        (0, {"group_id": ""}, "GroupId can't be empty."),
        (0, {"group_id": " "}, "GroupId can't be empty."),
        (0, {"group_instance_id": ""}, "InstanceId can't be empty."),
        (0, {"group_instance_id": " "}, "InstanceId can't be empty."),
        (0, {"rack_id": ""}, "RackId can't be empty."),
        (0, {"rack_id": " "}, "RackId can't be empty."),
        (0, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided"),
        (0, {"owned_partitions": None}, "TopicPartitions must be empty"),
        (0, {"owned_partitions": [TopicPartitions(bytes(16), [0])]}, "TopicPartitions must be"),
        (
            0,
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex",
        ),
        (1, {"member_id": ""}, "MemberId can't be empty."),
        (-1, {"member_id": ""}, "MemberId can't be empty."),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
    ],
)
def test_contradictory_request_is_refused(version, epoch, fields, reason):
    async def body(broker):
        member = ConsumerMember(broker, "one")
        response = await member.ask(version, member_epoch=epoch, **{**JOINING, **fields})

        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.error_message.startswith(reason)
        assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
        assert not broker.services.groups.list()

    run_with_broker(body)


def test_v1_requires_a_member_id():
    async def body(broker):
        response = await ConsumerMember(broker, "").ask(1, member_epoch=0, **JOINING)

        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.error_message == "MemberId can't be empty."

    run_with_broker(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_epoch": 9}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_id": "unknown-member"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "missing"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"server_assignor": "unheard of"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"server_assignor": ""}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_error_response_has_a_message(version, fields, code):
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")
        response = await member.ask(version, **fields)

        assert ErrorCode.of(response.error_code) == code
        assert response.error_message

    run_with_broker(body)


def test_missing_group_has_the_message_of_kafka():
    async def body(broker):
        response = await ConsumerMember(broker, "one").ask(group_id="missing", member_epoch=1)

        assert response.error_message == "Consumer group missing not found."

    run_with_broker(body)


def test_member_without_heartbeats_is_removed():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")
        await asyncio.sleep(50)

        assert (await member.ask()).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run_with_broker(body)
