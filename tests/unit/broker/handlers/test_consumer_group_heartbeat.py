"""ConsumerGroupHeartbeat: what a member says, what it is told, and what makes no sense."""

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
from unit.broker.handlers.membership import GROUP, ConsumerMember
from unit.broker.handlers.serving import serve

every_version = pytest.mark.parametrize("version", CONSUMER_GROUP_HEARTBEAT.versions)

JOINING = {
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["orders"],
    "owned_partitions": [],
}


@every_version
def test_the_only_member_gets_all_partitions(version):
    async def body(broker):
        topic = await broker.topic("orders", 3)
        member = ConsumerMember(broker, "one")
        joined = await member.join("orders", version=version)

        assert (joined.member_id, joined.member_epoch, joined.error_message) == ("one", 1, None)
        assert joined.heartbeat_interval_ms == 5_000
        assert member.owned == {topic.id: [0, 1, 2]}
        quiet = await member.beat(version=version)
        assert (quiet.member_id, quiet.member_epoch, quiet.assignment) == ("one", 1, None)

    serve(body)


def test_partitions_move_once_they_are_given_up():
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

    serve(body)


@every_version
def test_who_leaves_gives_everything_up(version):
    async def body(broker):
        topic = await broker.topic("orders", 2)
        first, second = ConsumerMember(broker, "a"), ConsumerMember(broker, "b")
        await first.join("orders")
        await second.join("orders")
        gone = await first.ask(version, member_epoch=-1)
        await second.beat()

        assert (gone.error_code, gone.member_id, gone.member_epoch) == (0, "a", -1)
        assert gone.heartbeat_interval_ms == 0, "none is expected any more"
        assert second.owned == {topic.id: [0, 1]}
        assert (await first.ask(version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    serve(body)


def test_a_static_member_that_comes_back_keeps_its_partitions():
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

    serve(body)


def test_v0_gives_an_id_to_who_has_none():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "")
        await member.join("orders", version=0)

        assert re.fullmatch(r"[\w-]{22}", member.member_id)
        assert (await member.beat(version=0)).member_epoch == 1

    serve(body)


def test_ids_do_not_begin_with_a_dash():
    made = {new_member_id() for _ in range(500)}

    assert len(made) == 500
    assert all(re.fullmatch(r"\w[\w-]{21}", each, re.ASCII) for each in made)


def test_a_member_is_known_with_all_that_it_said():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one", instance_id="desk-1")
        await member.join(
            "orders", rack_id="b", subscribed_topic_regex="pay.*", server_assignor="range"
        )

        [found] = broker.services.groups.describe(GROUP).members.values()
        assert (found.client_id, found.client_host) == ("tester", "/10.0.0.1")
        assert (found.instance_id, found.rack_id) == ("desk-1", "b")
        assert (found.subscribed_names, found.subscribed_regex) == (("orders",), "pay.*")
        assert (found.server_assignor, found.rebalance_timeout_ms) == ("range", 60_000)
        assert not found.is_classic

    serve(body)


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
        (0, {"subscribed_topic_names": None}, "A subscription must be provided"),
        (1, {"member_id": ""}, "MemberId can't be empty."),
        (-1, {"member_id": ""}, "MemberId can't be empty."),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
    ],
)
def test_what_makes_no_sense_is_refused(version, epoch, fields, reason):
    async def body(broker):
        member = ConsumerMember(broker, "one")
        answer = await member.ask(version, member_epoch=epoch, **{**JOINING, **fields})

        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message.startswith(reason)
        assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
        assert not broker.services.groups.list()

    serve(body)


def test_since_v1_members_make_their_own_ids():
    async def body(broker):
        answer = await ConsumerMember(broker, "").ask(1, member_epoch=0, **JOINING)

        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == "MemberId can't be empty."

    serve(body)


@every_version
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_epoch": 9}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "nobody's"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"server_assignor": "unheard of"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"server_assignor": ""}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_a_refusal_says_why(version, fields, code):
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")
        answer = await member.ask(version, **fields)

        assert ErrorCode.of(answer.error_code) == code
        assert answer.error_message

    serve(body)


def test_who_is_silent_for_too_long_is_forgotten():
    async def body(broker):
        await broker.topic("orders")
        member = ConsumerMember(broker, "one")
        await member.join("orders")
        await asyncio.sleep(50)

        assert (await member.ask()).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    serve(body)
