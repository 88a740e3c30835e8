"""Online upgrade and downgrade: a classic group becomes a consumer group, and the other way."""

import pytest

from kafscale.errors import GroupNotFoundError, RebalanceInProgressError
from kafscale.groups.classic import ClassicGroup
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.model import GroupRecord, Kind, MemberRecord
from unit.groups.consumer.driver import REBALANCE_MS, SESSION_MS, START_MS, Driver, facts, parts

TOPICS = facts(x=4)


def classic_member(name, *partitions, owned=(), **fields):
    subscription = Subscription(("x",), owned=(("x", tuple(owned)),) if owned else ())
    fields = {
        "protocols": (("range", encode_subscription(subscription)),),
        "assignment": encode_assignment({"x": partitions}) if partitions else b"",
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
    } | fields
    return MemberRecord(member_id=name, **fields)


def classic_group(*members, **fields):
    fields = {"state": "Stable", "protocol_type": "consumer", "protocol": "range"} | fields
    members = {member.member_id: member for member in members}
    return GroupRecord(group_id="g", generation=5, members=members, **fields)


def upgraded(*members, settings=None, **fields):
    record = classic_group(*members, **fields)
    group = ConsumerGroup.upgraded(record, settings or GroupSettings(), TOPICS, START_MS)
    return Driver(group=group, topics=TOPICS)


def test_classic_members_keep_what_they_have_until_one_of_the_new_protocol_comes():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    assert driver.group.kind is Kind.CONSUMER
    assert driver.group.state == "Stable"
    assert not driver.group.wants_downgrade
    driver.classic_beat("a", 5)
    assert driver.sync("b", 5) == {"x": (2, 3)}
    assert driver.enter("new").assignment == {}
    with pytest.raises(RebalanceInProgressError):
        driver.classic_beat("a", 5)
    assert driver.join("a", owned=[("x", (0, 1))]).generation == 5, "it has to give up one"
    (kept,) = driver.sync("a", 5)["x"]
    assert driver.join("b", owned=[("x", (2, 3))]).generation == 6, "it has not"
    assert driver.sync("b", 6) == {"x": (2, 3)}
    assert driver.join("a", owned=[("x", (kept,))]).generation == 6
    assert driver.beat("new", 6).assignment == parts(x={0, 1} - {kept})


def test_who_waits_for_an_assignment_holds_what_it_said_it_owned():
    driver = upgraded(
        classic_member("a", owned=(0, 1)), classic_member("b", 1, 2), state="PreparingRebalance"
    )
    assert driver.member("a").assigned == parts(x=(0,))
    assert driver.member("b").assigned == parts(x=(1, 2))


@pytest.mark.parametrize(
    ("members", "fields", "reason"),
    [
        ([classic_member("a", 0)], {"protocol_type": "connect"}, "connect"),
        ([classic_member("a", 0), classic_member("b")], {"size": 1}, "2 members"),
        ([classic_member("a", 0)], {"upgrades": False}, "switched off"),
        ([classic_member("a", assignment=b"\0")], {}, "bytes were announced"),
        ([classic_member("a", protocols=(("range", b"\0"),))], {}, "bytes were announced"),
        ([classic_member("a", protocols=())], {}, "no protocol"),
        ([classic_member("a", 0, 1), classic_member("b", 1)], {}, "twice"),
        ([classic_member("a", assignment=encode_assignment({}, b"tasks"))], {}, "more than"),
    ],
)
def test_a_group_that_cannot_be_upgraded_says_why(members, fields, reason):
    settings = GroupSettings(
        upgrades=fields.pop("upgrades", True), consumer_size_max=fields.pop("size", 100)
    )
    with pytest.raises(GroupNotFoundError, match=reason):
        upgraded(*members, settings=settings, **fields)


def test_when_the_last_member_of_the_new_protocol_goes_the_group_is_to_be_classic_again():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    driver.enter("new")
    assert not driver.group.wants_downgrade
    driver.beat("new", -1)
    assert driver.group.wants_downgrade
    record = driver.group.downgraded()
    assert (record.kind, record.state) == (Kind.CLASSIC, "PreparingRebalance")
    assert (record.protocol_type, record.protocol, record.leader) == ("consumer", "range", "a")
    assert record.generation == driver.group.record().assignment_epoch == 6
    assert record.members["a"].protocols == classic_member("a").protocols
    assert record.members["a"].session_timeout_ms == SESSION_MS
    assert 0 in decode_assignment(record.members["a"].assignment)["x"]


def test_the_classic_group_of_those_who_are_left_waits_for_them_to_join():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    driver.enter("new")
    driver.beat("new", -1)
    group = ClassicGroup.restored(driver.group.downgraded(), driver.settings, driver.now_ms)
    assert (group.state, group.member_count) == ("PreparingRebalance", 2)
    assert group.deadline_ms is not None


def test_who_takes_the_place_of_the_last_member_of_the_new_protocol_disturbs_nobody():
    driver = upgraded(classic_member("a", 0, 1, 2, 3, instance_id="desk"))
    driver.enter("new", instance_id="desk")
    driver.join("", instance_id="desk")
    assert driver.group.wants_downgrade
    record = driver.group.downgraded()
    assert (record.kind, record.state, record.generation) == (Kind.CLASSIC, "Stable", 5)
    (member,) = record.members.values()
    assert decode_assignment(member.assignment) == {"x": (0, 1, 2, 3)}


def test_a_downgrade_is_found_by_the_next_coordinator_too_and_by_expiry():
    driver = upgraded(classic_member("a", 0), classic_member("b", 1))
    driver.enter("new")
    for _ in range(3):
        driver.wait(15_000)
        for name in "ab":
            with pytest.raises(RebalanceInProgressError):
                driver.classic_beat(name, 5)
    assert driver.group.wants_downgrade
    driver.restart()
    assert driver.group.wants_downgrade


@pytest.mark.parametrize("settings", [{"downgrades": False}, {"size_max": 0}])
def test_a_downgrade_may_be_impossible(settings):
    driver = Driver(**settings)
    driver.enter("new")
    driver.join("old")
    driver.beat("new", -1)
    assert not driver.group.wants_downgrade
    assert driver.group.member_count == 1


def test_an_empty_group_stays_what_it_is():
    driver = Driver()
    driver.enter("new")
    driver.beat("new", -1)
    assert not driver.group.wants_downgrade
