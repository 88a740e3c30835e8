"""The interface of a classic group, beside what the scripts cover."""

import pytest

from kafscale.errors import GroupNotFoundError
from kafscale.groups.classic import ClassicGroup
from kafscale.groups.consumer_protocol import Subscription, encode_subscription
from kafscale.groups.effects import Reply
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    MemberIdentity,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord

SETTINGS = GroupSettings(initial_rebalance_delay_ms=0)
ORDERS = encode_subscription(Subscription(("orders",)))
BILLS = encode_subscription(Subscription(("bills", "orders")))


def joined(*metadata: bytes, protocol_type: str = "consumer") -> ClassicGroup:
    """A group of members that have joined, and wait for the leader."""
    group = ClassicGroup("readers", SETTINGS, 0)
    for index, each in enumerate(metadata):
        group.handle(
            Join(
                reply_token=index + 1,
                member_id="",
                new_member_id=f"member-{index}",
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=20_000,
                protocol_type=protocol_type,
                protocols=(("range", each),),
            ),
            0,
        )
    return group


def stable(*metadata: bytes, protocol_type: str = "consumer") -> ClassicGroup:
    group = joined(*metadata, protocol_type=protocol_type)
    group.handle(Tick(), 0)
    for index in reversed(range(len(metadata))):
        group.handle(
            Sync(
                reply_token=index + 101,
                member_id=f"member-{index}",
                generation=1,
                assignments={f"member-{each}": b"%d" % each for each in range(len(metadata))},
            ),
            0,
        )
    assert group.state == "Stable"
    return group


def test_new_group_is_empty():
    group = ClassicGroup("readers", SETTINGS, 7)
    assert (group.group_id, group.group_type, group.state) == (
        "readers",
        GroupType.CLASSIC,
        "Empty",
    )
    assert group.member_count == 0
    assert group.deadline_ms is None
    assert group.record() == GroupRecord(group_id="readers", state="Empty", state_since_ms=7)


def test_record_of_a_stable_group_is_complete():
    group = stable(ORDERS)
    member = MemberRecord(
        member_id="member-0",
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocols=(("range", ORDERS),),
        assignment=b"0",
    )
    assert group.record() == GroupRecord(
        group_id="readers",
        state="Stable",
        protocol_type="consumer",
        protocol="range",
        leader="member-0",
        generation=1,
        members={"member-0": member},
    )
    assert ClassicGroup.restored(group.record(), SETTINGS, 0).record() == group.record()


def test_heartbeat_changes_only_its_time():
    group = stable(ORDERS, BILLS)
    before, due_ms = group.record(), group.deadline_ms
    heartbeat = Heartbeat(reply_token=1, member_id="member-0", generation=1)
    assert [type(effect) for effect in group.handle(heartbeat, 5_000)] == [Reply]
    assert group.deadline_ms == due_ms
    after = group.record()
    assert after.members["member-0"].heartbeat_ms == 5_000
    assert after.members["member-1"] == before.members["member-1"]
    assert after.generation == before.generation


def test_group_subscribes_to_its_members_topics():
    group = stable(ORDERS, BILLS)
    assert group.subscribes_to("orders")
    assert group.subscribes_to("bills")
    assert not group.subscribes_to("letters")
    again = ClassicGroup.restored(group.record(), SETTINGS, 0)
    assert again.subscribes_to("bills")
    assert not again.subscribes_to("letters")


def test_unknown_subscription_matches_every_topic():
    assert joined(ORDERS).subscribes_to("letters")
    assert stable(ORDERS, b"?").subscribes_to("letters")


def test_groups_of_other_protocols_subscribe_to_nothing():
    assert not ClassicGroup("readers", SETTINGS, 0).subscribes_to("orders")
    assert not stable(ORDERS, protocol_type="connect").subscribes_to("orders")


def test_empty_group_subscribes_to_nothing():
    group = stable(b"?")
    group.handle(Leave(reply_token=1, members=(MemberIdentity(member_id="member-0"),)), 0)
    assert group.state == "Empty"
    assert not group.subscribes_to("orders")
    assert not ClassicGroup.restored(group.record(), SETTINGS, 0).subscribes_to("orders")


def test_topic_changes_are_ignored():
    group = stable(ORDERS)
    assert group.handle(TopicsChanged(topics={}), 0) == []
    assert group.state == "Stable"


def test_consumer_heartbeat_is_rejected():
    heartbeat = ConsumerHeartbeat(reply_token=5, member_id="member", member_epoch=0)
    (reply,) = stable(ORDERS).handle(heartbeat, 0)
    assert isinstance(reply, Reply)
    assert reply.reply_token == 5
    assert isinstance(reply.response, GroupNotFoundError)


@pytest.mark.parametrize("member_id", [None, "", "member-0", "unknown"])
def test_offsets_can_be_fetched_without_membership(member_id):
    stable(ORDERS).check_fetch(member_id, -1)


def test_aborted_group_keeps_its_last_record():
    group = stable(ORDERS)
    record = group.record()
    assert group.abort(GroupNotFoundError(), 9) == []
    assert group.state == "Dead"
    assert group.record() == record


def test_rebalance_reason_includes_the_clients_reason():
    group = stable(ORDERS)
    effects = group.handle(
        Join(
            reply_token=5,
            member_id="member-0",
            new_member_id="",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=(("range", ORDERS),),
            reason="topics have changed",
        ),
        0,
    )
    assert effects[-1].reason == "leader member-0 has joined again: topics have changed"
