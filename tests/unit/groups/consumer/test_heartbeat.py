"""The consumer protocol: joining, heartbeats, reconciliation, leaving."""

import pytest
from msgspec.structs import replace

from kafscale.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    GroupFullError,
    InvalidRegexError,
    UnknownMemberError,
    UnreleasedInstanceError,
    UnsupportedAssignorError,
)
from unit.groups.consumer.driver import REBALANCE_MS, Driver, partitions, topic_infos


@pytest.fixture
def driver():
    return Driver()


def pair():
    """Two reconciled members: a with 0 and 1, b with 2 and 3, both in epoch 2."""
    driver = Driver()
    driver.join_consumer("a")
    driver.join_consumer("b")
    driver.heartbeat("a", 1)
    driver.heartbeat("a", 1, owned=partitions(x=(0, 1)))
    driver.heartbeat("b", 2)
    assert driver.group.state == "Stable"
    return driver


def test_first_member_gets_everything_at_once(driver):
    response = driver.join_consumer("a")
    assert (response.member_id, response.member_epoch) == ("a", 1)
    assert response.heartbeat_interval_ms == driver.settings.consumer_heartbeat_interval_ms
    assert response.assignment == partitions(x=(0, 1, 2, 3))
    assert driver.saved
    assert driver.is_durable
    assert driver.rebalanced
    assert driver.group.state == "Stable"


def test_second_member_waits_until_the_first_has_revoked(driver):
    driver.join_consumer("a")
    assert driver.join_consumer("b").assignment == {}
    assert driver.group.state == "Reconciling"
    requested = driver.heartbeat("a", 1)
    assert (requested.member_epoch, requested.assignment) == (1, partitions(x=(0, 1)))
    assert driver.heartbeat("b", 2).assignment is None, "nothing is unowned yet"
    done = driver.heartbeat("a", 1, owned=partitions(x=(0, 1)))
    assert (done.member_epoch, done.assignment) == (2, None), "it has its assignment already"
    assert driver.is_durable, "its epoch is new"
    assert driver.heartbeat("b", 2).assignment == partitions(x=(2, 3))
    assert driver.group.state == "Stable"


def test_partitions_being_taken_up_stay_owned_until_revoked():
    """What b owned before its assignment is no sign that it has revoked one."""
    driver = Driver(topics=topic_infos(x=6))
    driver.join_consumer("a")
    driver.join_consumer("b")
    driver.heartbeat("a", 1)
    driver.heartbeat("a", 1, owned=partitions(x=(0, 1, 2)))
    given = driver.heartbeat("b", 2).assignment
    assert given == partitions(x=(3, 4, 5))
    driver.join_consumer("c")
    requested = driver.heartbeat("b", 2, owned={})
    kept = requested.assignment[b"x"]
    assert (requested.member_epoch, len(kept)) == (2, 2)
    assert driver.heartbeat("c", 3).assignment is None, "b may have taken up all three"
    assert driver.heartbeat("b", 2, owned=given).member_epoch == 2
    assert driver.heartbeat("b", 2, owned={b"x": kept}).member_epoch == 3
    assert driver.heartbeat("c", 3).assignment == {b"x": given[b"x"] - kept}


def test_plain_heartbeat_saves_nothing_and_has_no_assignment():
    driver = pair()
    for member in "ab":
        response = driver.heartbeat(member, 2)
        assert (response.member_epoch, response.assignment) == (2, None)
        assert not driver.saved
        assert not driver.is_durable


def test_full_request_gets_the_full_assignment():
    driver = pair()
    everything = {"subscribed_names": ("x",), "rebalance_timeout_ms": REBALANCE_MS}
    assert driver.heartbeat("a", 2, **everything).assignment is None
    response = driver.heartbeat("a", 2, owned=partitions(x=(0, 1)), **everything)
    assert response.assignment == partitions(x=(0, 1))
    assert driver.is_durable, "an earlier response may still wait for the store"
    assert not driver.saved


def test_lost_response_is_repeated():
    driver = Driver()
    driver.join_consumer("a")
    assert driver.join_consumer("a").assignment == partitions(x=(0, 1, 2, 3)), "its join, and again"
    driver.join_consumer("b", "y")
    driver.heartbeat("a", 1)
    again = driver.heartbeat("a", 1, owned=partitions(x=(0, 1, 2, 3)))
    assert again.member_epoch == 2
    with pytest.raises(FencedMemberEpochError):
        driver.heartbeat("a", 1)


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(0, {}), (1, None), (1, partitions(x=(0, 1, 2))), (3, partitions(x=(0, 1)))],
)
def test_member_in_another_epoch_is_fenced(epoch, owned):
    driver = pair()
    with pytest.raises(FencedMemberEpochError):
        driver.heartbeat("a", epoch, owned=owned)
    assert driver.group.member_count == 2


def test_unknown_member_is_rejected(driver):
    with pytest.raises(UnknownMemberError):
        driver.heartbeat("a", 1)
    with pytest.raises(UnknownMemberError):
        driver.heartbeat("a", -1)
    assert driver.group.state == "Empty"


def test_leaving_member_releases_its_partitions():
    driver = pair()
    response = driver.heartbeat("b", -1)
    assert (response.member_id, response.member_epoch, response.assignment) == ("b", -1, None)
    assert driver.is_durable
    assert driver.group.state == "Assigning"
    assert driver.heartbeat("a", 2).assignment == partitions(x=(0, 1, 2, 3))
    driver.heartbeat("a", -1)
    assert (driver.group.state, driver.group.member_count) == ("Empty", 0)
    assert driver.join_consumer("c").member_epoch == driver.group.record().generation


def test_changed_subscription_starts_a_new_epoch():
    driver = Driver(topics=topic_infos(x=1, y=1))
    driver.join_consumer("a")
    assert driver.heartbeat("a", 1, subscribed_names=("y",)).assignment == {}
    assert driver.rebalanced
    assert driver.heartbeat("a", 1, owned={}).assignment == partitions(y=(0,))
    driver.heartbeat("a", 2, subscribed_names=("y",))
    assert not driver.rebalanced


def test_regex_subscribes_to_matching_topics():
    driver = Driver(topics=topic_infos(orders=1, orders_eu=1, users=1))
    driver.heartbeat("a", 0, subscribed_regex="orders.*", owned={}, rebalance_timeout_ms=1)
    assert driver.member("a").assigned == partitions(orders=(0,), orders_eu=(0,))
    driver.heartbeat("a", 1, subscribed_regex="", subscribed_names=("users",))
    driver.heartbeat("a", 1, owned={})
    assert driver.member("a").assigned == partitions(users=(0,))


def test_regex_matches_only_visible_topics():
    driver = Driver(topics=topic_infos(orders=1, orders_eu=1))
    seen = {"orders"}
    can_describe = seen.__contains__
    driver.heartbeat(
        "a",
        0,
        subscribed_regex="orders.*",
        owned={},
        rebalance_timeout_ms=1,
        can_describe=can_describe,
    )
    assert driver.member("a").assigned == partitions(orders=(0,))
    assert driver.member("a").subscribed_regex == "orders.*"

    driver.change_topics(orders=1, orders_eu=1, orders_us=1, orders_asia=1)
    seen.add("orders_us")
    driver.heartbeat("a", 1, can_describe=can_describe)
    assert driver.member("a").assigned == partitions(orders=(0,), orders_us=(0,))

    seen.remove("orders")
    driver.heartbeat("a", 2, can_describe=can_describe)
    driver.heartbeat("a", 2, can_describe=can_describe, owned=partitions(orders_us=(0,)))
    assert driver.member("a").assigned == partitions(orders_us=(0,))


def test_invisible_topics_stay_hidden_after_a_restart():
    driver = Driver(topics=topic_infos(orders=1, orders_eu=1))
    can_describe = {"orders"}.__contains__
    driver.heartbeat(
        "a",
        0,
        subscribed_regex="orders.*",
        owned={},
        rebalance_timeout_ms=1,
        can_describe=can_describe,
    )
    driver.restart()
    driver.change_topics(orders=2, orders_eu=2)
    driver.heartbeat("a", 1, can_describe=can_describe)
    assert driver.member("a").assigned == partitions(orders=(0, 1))


def test_member_that_sees_all_matches_causes_no_rebalance():
    driver = Driver(topics=topic_infos(orders=1))
    fields = {"subscribed_regex": "orders.*", "owned": {}, "rebalance_timeout_ms": 1}
    driver.heartbeat("a", 0, can_describe=lambda _: True, **fields)
    driver.restart()
    driver.heartbeat("a", 1, can_describe=lambda _: True)
    assert driver.group.record().generation == 1


def test_invalid_regex_changes_nothing(driver):
    with pytest.raises(InvalidRegexError):
        driver.join_consumer("a", subscribed_regex="(")
    assert driver.group.member_count == 0
    driver.join_consumer("a")
    with pytest.raises(InvalidRegexError):
        driver.heartbeat("a", 1, subscribed_regex="(")
    assert driver.member("a").subscribed_regex == ""


def test_unsupported_assignor_is_rejected(driver):
    with pytest.raises(UnsupportedAssignorError, match="uniform, range"):
        driver.join_consumer("a", server_assignor="sticky")
    assert driver.group.member_count == 0
    driver.join_consumer("a", server_assignor="range")
    assert driver.group.record().protocol == "range"


def test_size_limit():
    driver = Driver(consumer_size_max=1)
    driver.join_consumer("a")
    with pytest.raises(GroupFullError):
        driver.join_consumer("b")
    driver.join_consumer("a")
    driver.heartbeat("a", -1)
    driver.join_consumer("b")


def test_member_without_subscription(driver):
    driver.join_consumer("a")
    response = driver.heartbeat("b", 0, subscribed_names=(), owned={}, rebalance_timeout_ms=1)
    assert (response.member_epoch, response.assignment) == (1, {})
    assert not driver.rebalanced


def test_static_member_returns_to_its_assignment():
    driver = Driver()
    driver.join_consumer("a", instance_id="i")
    driver.join_consumer("b")
    driver.heartbeat("a", 1, instance_id="i")
    driver.heartbeat("a", 1, instance_id="i", owned=partitions(x=(0, 1)))
    driver.heartbeat("b", 2)
    response = driver.heartbeat("a", -2, instance_id="i")
    assert response.member_epoch == -2
    assert driver.saved
    assert driver.group.state == "Reconciling"
    back = driver.join_consumer("a2", instance_id="i")
    assert (back.member_epoch, back.assignment) == (2, partitions(x=(0, 1)))
    assert not driver.rebalanced
    assert driver.group.state == "Stable"
    assert driver.group.record().members.keys() == {"a2", "b"}
    with pytest.raises(FencedInstanceError):
        driver.heartbeat("a", 2, instance_id="i")


def test_static_member_that_leaves_temporarily_releases_revoked_partitions():
    driver = Driver()
    driver.join_consumer("a", instance_id="i")
    driver.join_consumer("b")
    driver.heartbeat("a", 1, instance_id="i")
    driver.heartbeat("a", -2, instance_id="i")
    assert driver.heartbeat("b", 2).assignment == partitions(x=(2, 3))
    assert driver.join_consumer("a", instance_id="i").assignment == partitions(x=(0, 1))


def test_static_member_that_does_not_return_is_removed():
    driver = Driver()
    driver.join_consumer("a", instance_id="i")
    driver.heartbeat("a", -2, instance_id="i")
    driver.wait(driver.settings.consumer_session_timeout_ms)
    assert driver.group.state == "Empty"


def test_instance_has_one_member_at_a_time():
    driver = Driver()
    driver.join_consumer("a", instance_id="i")
    with pytest.raises(UnreleasedInstanceError):
        driver.join_consumer("b", instance_id="i")
    with pytest.raises(FencedInstanceError):
        driver.heartbeat("b", 1, instance_id="i")
    with pytest.raises(FencedInstanceError):
        driver.heartbeat("b", -1, instance_id="i")
    with pytest.raises(UnknownMemberError):
        driver.heartbeat("a", 1, instance_id="other")
    assert driver.join_consumer("a", instance_id="i").member_epoch == 1, "its own join, and again"
    driver.heartbeat("a", -1, instance_id="i")
    assert driver.join_consumer("b", instance_id="i").assignment == partitions(x=(0, 1, 2, 3))


def test_instance_cannot_be_taken_with_the_id_of_another_member():
    driver = Driver()
    driver.join_consumer("a", instance_id="i")
    driver.heartbeat("a", -2, instance_id="i")
    driver.join_consumer("b")
    with pytest.raises(FencedInstanceError):
        driver.join_consumer("b", instance_id="i")
    assert driver.group.member_count == 2


def test_instance_id_may_be_added_and_changed():
    driver = Driver()
    driver.join_consumer("a")
    driver.join_consumer("a", instance_id="i")
    driver.join_consumer("a", instance_id="j")
    driver.heartbeat("a", -1, instance_id="j")
    assert driver.join_consumer("b", instance_id="i").member_epoch == 3


def test_changed_settings_apply_to_members_at_their_next_heartbeat(driver):
    driver.join_consumer("a")
    before_ms = driver.group.deadline_ms
    changed = replace(
        driver.settings, consumer_session_timeout_ms=1000, consumer_heartbeat_interval_ms=70
    )
    driver.group.configure(changed)
    assert driver.group.deadline_ms == before_ms
    assert driver.heartbeat("a", 1).heartbeat_interval_ms == 70
    assert driver.group.deadline_ms == driver.now_ms + 1000
    assert driver.saved, "the next coordinator has to know"
