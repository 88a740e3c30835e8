"""Online upgrade and downgrade between classic and consumer groups."""

import pytest

from kafscale.errors import GroupNotFoundError, RebalanceInProgressError
from kafscale.groups.classic import ClassicGroup
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord
from unit.groups.consumer.driver import (
    REBALANCE_MS,
    SESSION_MS,
    START_MS,
    Driver,
    partitions,
    topic_infos,
)

TOPICS = topic_infos(x=4)


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


def test_upgraded_members_keep_partitions_until_a_consumer_member_joins():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    assert driver.group.group_type is GroupType.CONSUMER
    assert driver.group.state == "Stable"
    assert not driver.group.needs_downgrade
    driver.classic_heartbeat("a", 5)
    assert driver.sync("b", 5) == {"x": (2, 3)}
    assert driver.join_consumer("new").assignment == {}
    with pytest.raises(RebalanceInProgressError):
        driver.classic_heartbeat("a", 5)
    assert driver.join("a", owned=[("x", (0, 1))]).generation == 5, "it has to revoke one"
    (kept,) = driver.sync("a", 5)["x"]
    assert driver.join("b", owned=[("x", (2, 3))]).generation == 6, "it has not"
    assert driver.sync("b", 6) == {"x": (2, 3)}
    assert driver.join("a", owned=[("x", (kept,))]).generation == 6
    assert driver.heartbeat("new", 6).assignment == partitions(x={0, 1} - {kept})


def test_member_without_assignment_keeps_what_it_reported():
    driver = upgraded(
        classic_member("a", owned=(0, 1)), classic_member("b", 1, 2), state="PreparingRebalance"
    )
    assert driver.member("a").assigned == partitions(x=(0,))
    assert driver.member("b").assigned == partitions(x=(1, 2))


@pytest.mark.parametrize(
    ("members", "fields", "reason"),
    [
        ([classic_member("a", 0)], {"protocol_type": "connect"}, "embedded protocol"),
        ([classic_member("a", 0), classic_member("b")], {"size": 1}, "2 members"),
        ([classic_member("a", 0)], {"upgrades": False}, "upgrade is disabled"),
        ([classic_member("a", assignment=b"\0")], {}, "protocol is malformed"),
        ([classic_member("a", protocols=(("range", b"\0"),))], {}, "protocol is malformed"),
        ([classic_member("a", protocols=())], {}, "no protocol"),
        ([classic_member("a", 0, 1), classic_member("b", 1)], {}, "twice"),
        ([classic_member("a", assignment=encode_assignment({}, b"tasks"))], {}, "user data"),
    ],
)
def test_rejected_upgrade_has_a_reason(members, fields, reason):
    settings = GroupSettings(
        upgrades=fields.pop("upgrades", True), consumer_size_max=fields.pop("size", 100)
    )
    with pytest.raises(GroupNotFoundError, match=reason):
        upgraded(*members, settings=settings, **fields)


def test_downgrade_when_the_last_consumer_member_leaves():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    driver.join_consumer("new")
    assert not driver.group.needs_downgrade
    driver.heartbeat("new", -1)
    assert driver.group.needs_downgrade
    record = driver.group.downgraded()
    assert (record.group_type, record.state) == (GroupType.CLASSIC, "PreparingRebalance")
    assert (record.protocol_type, record.protocol, record.leader) == ("consumer", "range", "a")
    assert record.generation == driver.group.record().assignment_epoch == 6
    assert record.members["a"].protocols == classic_member("a").protocols
    assert record.members["a"].session_timeout_ms == SESSION_MS
    assert 0 in decode_assignment(record.members["a"].assignment)["x"]


def test_downgraded_group_waits_for_members_to_rejoin():
    driver = upgraded(classic_member("a", 0, 1), classic_member("b", 2, 3))
    driver.join_consumer("new")
    driver.heartbeat("new", -1)
    group = ClassicGroup.restored(driver.group.downgraded(), driver.settings, driver.now_ms)
    assert (group.state, group.member_count) == ("PreparingRebalance", 2)
    assert group.deadline_ms is not None


def test_downgrade_by_replacement_of_the_last_consumer_member_is_stable():
    driver = upgraded(classic_member("a", 0, 1, 2, 3, instance_id="desk"))
    driver.join_consumer("new", instance_id="desk")
    driver.join("", instance_id="desk")
    assert driver.group.needs_downgrade
    record = driver.group.downgraded()
    assert (record.group_type, record.state, record.generation) == (GroupType.CLASSIC, "Stable", 5)
    (member,) = record.members.values()
    assert decode_assignment(member.assignment) == {"x": (0, 1, 2, 3)}


def test_downgrade_after_expiry_and_restart():
    driver = upgraded(classic_member("a", 0), classic_member("b", 1))
    driver.join_consumer("new")
    for _ in range(3):
        driver.wait(15_000)
        for name in "ab":
            with pytest.raises(RebalanceInProgressError):
                driver.classic_heartbeat(name, 5)
    assert driver.group.needs_downgrade
    driver.restart()
    assert driver.group.needs_downgrade


@pytest.mark.parametrize("settings", [{"downgrades": False}, {"size_max": 0}])
def test_downgrade_may_be_disabled(settings):
    driver = Driver(**settings)
    driver.join_consumer("new")
    driver.join("old")
    driver.heartbeat("new", -1)
    assert not driver.group.needs_downgrade
    assert driver.group.member_count == 1


def test_empty_group_is_not_downgraded():
    driver = Driver()
    driver.join_consumer("new")
    driver.heartbeat("new", -1)
    assert not driver.group.needs_downgrade
