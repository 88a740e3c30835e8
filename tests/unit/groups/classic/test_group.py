"""What can be seen of a classic group from outside, beside what the scripts tell."""

import pytest

from kafscale.errors import GroupNotFoundError
from kafscale.groups.classic import ClassicGroup
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer_protocol import Subscription, encode_subscription
from kafscale.groups.effects import Reply
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    Leaver,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.model import GroupRecord, Kind, MemberRecord

SETTINGS = GroupSettings(initial_rebalance_delay_ms=0)
ORDERS = encode_subscription(Subscription(("orders",)))
BILLS = encode_subscription(Subscription(("bills", "orders")))


def joined(*metadata: bytes, protocol_type: str = "consumer") -> ClassicGroup:
    """A group of members that have joined, and wait for the leader."""
    group = ClassicGroup("readers", SETTINGS, 0)
    for index, each in enumerate(metadata):
        group.handle(
            Join(
                ticket=index + 1,
                member_id="",
                fresh_id=f"member-{index}",
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
                ticket=index + 101,
                member_id=f"member-{index}",
                generation=1,
                assignments={f"member-{each}": b"%d" % each for each in range(len(metadata))},
            ),
            0,
        )
    assert group.state == "Stable"
    return group


def test_a_new_group_is_empty():
    group = ClassicGroup("readers", SETTINGS, 7)
    assert (group.group_id, group.kind, group.state) == ("readers", Kind.CLASSIC, "Empty")
    assert group.member_count == 0
    assert group.deadline_ms is None
    assert group.record() == GroupRecord(group_id="readers", state="Empty", state_since_ms=7)


def test_a_record_has_all_that_a_stable_group_is():
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


def test_a_heartbeat_leaves_only_the_time_at_which_it_came():
    group = stable(ORDERS, BILLS)
    before, due_ms = group.record(), group.deadline_ms
    beat = Heartbeat(ticket=1, member_id="member-0", generation=1)
    assert [type(effect) for effect in group.handle(beat, 5_000)] == [Reply]
    assert group.deadline_ms == due_ms
    after = group.record()
    assert after.members["member-0"].heartbeat_ms == 5_000
    assert after.members["member-1"] == before.members["member-1"]
    assert after.generation == before.generation


def test_it_reads_what_its_members_read():
    group = stable(ORDERS, BILLS)
    assert group.subscribes_to("orders")
    assert group.subscribes_to("bills")
    assert not group.subscribes_to("letters")
    again = ClassicGroup.restored(group.record(), SETTINGS, 0)
    assert again.subscribes_to("bills")
    assert not again.subscribes_to("letters")


def test_it_may_read_anything_while_that_is_not_known():
    assert joined(ORDERS).subscribes_to("letters")
    assert stable(ORDERS, b"?").subscribes_to("letters")


def test_others_than_consumers_read_nothing():
    assert not ClassicGroup("readers", SETTINGS, 0).subscribes_to("orders")
    assert not stable(ORDERS, protocol_type="connect").subscribes_to("orders")


def test_it_reads_nothing_any_more_when_everybody_has_left():
    group = stable(b"?")
    group.handle(Leave(ticket=1, members=(Leaver(member_id="member-0"),)), 0)
    assert group.state == "Empty"
    assert not group.subscribes_to("orders")
    assert not ClassicGroup.restored(group.record(), SETTINGS, 0).subscribes_to("orders")


def test_topics_are_the_leader_s_business():
    group = stable(ORDERS)
    assert group.handle(TopicsChanged(topics={}), 0) == []
    assert group.state == "Stable"


def test_it_does_not_speak_the_other_protocol():
    heartbeat = ConsumerHeartbeat(ticket=5, member_id="member", member_epoch=0)
    (reply,) = stable(ORDERS).handle(heartbeat, 0)
    assert isinstance(reply, Reply)
    assert reply.ticket == 5
    assert isinstance(reply.answer, GroupNotFoundError)


@pytest.mark.parametrize("member_id", [None, "", "member-0", "nobody"])
def test_everybody_may_read_its_offsets(member_id):
    stable(ORDERS).check_fetch(member_id, -1)


def test_a_group_that_was_dismissed_leaves_the_record_that_it_had():
    group = stable(ORDERS)
    record = group.record()
    assert group.dismiss(GroupNotFoundError(), 9) == []
    assert group.state == "Dead"
    assert group.record() == record


def test_why_a_client_joins_is_told():
    group = stable(ORDERS)
    effects = group.handle(
        Join(
            ticket=5,
            member_id="member-0",
            fresh_id="",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=(("range", ORDERS),),
            reason="topics have changed",
        ),
        0,
    )
    assert effects[-1].reason == "leader member-0 has joined again: topics have changed"
