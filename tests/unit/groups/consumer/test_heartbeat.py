"""The new protocol: joining, staying, moving on, leaving."""

import pytest

from kafscale.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    GroupFullError,
    InvalidRegexError,
    UnknownMemberError,
    UnreleasedInstanceError,
    UnsupportedAssignorError,
)
from unit.groups.consumer.driver import REBALANCE_MS, Driver, facts, parts


@pytest.fixture
def driver():
    return Driver()


def pair():
    """Two members that have settled: a with 0 and 1, b with 2 and 3, both in epoch 2."""
    driver = Driver()
    driver.enter("a")
    driver.enter("b")
    driver.beat("a", 1)
    driver.beat("a", 1, owned=parts(x=(0, 1)))
    driver.beat("b", 2)
    assert driver.group.state == "Stable"
    return driver


def test_the_first_member_gets_everything_at_once(driver):
    answer = driver.enter("a")
    assert (answer.member_id, answer.member_epoch) == ("a", 1)
    assert answer.heartbeat_interval_ms == driver.settings.consumer_heartbeat_interval_ms
    assert answer.assignment == parts(x=(0, 1, 2, 3))
    assert driver.saved
    assert driver.durable
    assert driver.rebalanced
    assert driver.group.state == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up(driver):
    driver.enter("a")
    assert driver.enter("b").assignment == {}
    assert driver.group.state == "Reconciling"
    asked = driver.beat("a", 1)
    assert (asked.member_epoch, asked.assignment) == (1, parts(x=(0, 1)))
    assert driver.beat("b", 2).assignment is None, "nothing is free yet"
    done = driver.beat("a", 1, owned=parts(x=(0, 1)))
    assert (done.member_epoch, done.assignment) == (2, None), "it has heard of its partitions"
    assert driver.durable, "its epoch is news"
    assert driver.beat("b", 2).assignment == parts(x=(2, 3))
    assert driver.group.state == "Stable"


def test_who_is_taking_up_partitions_keeps_them_until_it_says_otherwise():
    """What b owned before it heard of its partitions is no sign that it has given one up."""
    driver = Driver(topics=facts(x=6))
    driver.enter("a")
    driver.enter("b")
    driver.beat("a", 1)
    driver.beat("a", 1, owned=parts(x=(0, 1, 2)))
    given = driver.beat("b", 2).assignment
    assert given == parts(x=(3, 4, 5))
    driver.enter("c")
    asked = driver.beat("b", 2, owned={})
    kept = asked.assignment[b"x"]
    assert (asked.member_epoch, len(kept)) == (2, 2)
    assert driver.beat("c", 3).assignment is None, "b may have taken up all three"
    assert driver.beat("b", 2, owned=given).member_epoch == 2
    assert driver.beat("b", 2, owned={b"x": kept}).member_epoch == 3
    assert driver.beat("c", 3).assignment == {b"x": given[b"x"] - kept}


def test_a_plain_heartbeat_saves_nothing_and_tells_nothing():
    driver = pair()
    for member in "ab":
        answer = driver.beat(member, 2)
        assert (answer.member_epoch, answer.assignment) == (2, None)
        assert not driver.saved
        assert not driver.durable


def test_who_says_everything_is_told_everything():
    driver = pair()
    everything = {"subscribed_names": ("x",), "rebalance_timeout_ms": REBALANCE_MS}
    assert driver.beat("a", 2, **everything).assignment is None
    answer = driver.beat("a", 2, owned=parts(x=(0, 1)), **everything)
    assert answer.assignment == parts(x=(0, 1))
    assert driver.durable, "an earlier answer may still be on its way to the store"
    assert not driver.saved


def test_a_lost_answer_is_given_again():
    driver = Driver()
    driver.enter("a")
    assert driver.enter("a").assignment == parts(x=(0, 1, 2, 3)), "its join, and again"
    driver.enter("b", "y")
    driver.beat("a", 1)
    again = driver.beat("a", 1, owned=parts(x=(0, 1, 2, 3)))
    assert again.member_epoch == 2
    with pytest.raises(FencedMemberEpochError):
        driver.beat("a", 1)


@pytest.mark.parametrize(
    ("epoch", "owned"), [(0, {}), (1, None), (1, parts(x=(0, 1, 2))), (3, parts(x=(0, 1)))]
)
def test_a_member_in_another_epoch_is_fenced(epoch, owned):
    driver = pair()
    with pytest.raises(FencedMemberEpochError):
        driver.beat("a", epoch, owned=owned)
    assert driver.group.member_count == 2


def test_who_is_not_there_is_unknown(driver):
    with pytest.raises(UnknownMemberError):
        driver.beat("a", 1)
    with pytest.raises(UnknownMemberError):
        driver.beat("a", -1)
    assert driver.group.state == "Empty"


def test_leaving_frees_everything_for_the_others():
    driver = pair()
    answer = driver.beat("b", -1)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == ("b", -1, None)
    assert driver.durable
    assert driver.group.state == "Assigning"
    assert driver.beat("a", 2).assignment == parts(x=(0, 1, 2, 3))
    driver.beat("a", -1)
    assert (driver.group.state, driver.group.member_count) == ("Empty", 0)
    assert driver.enter("c").member_epoch == driver.group.record().generation


def test_a_changed_subscription_makes_a_new_epoch():
    driver = Driver(topics=facts(x=1, y=1))
    driver.enter("a")
    assert driver.beat("a", 1, subscribed_names=("y",)).assignment == {}
    assert driver.rebalanced
    assert driver.beat("a", 1, owned={}).assignment == parts(y=(0,))
    driver.beat("a", 2, subscribed_names=("y",))
    assert not driver.rebalanced


def test_an_expression_subscribes_to_what_it_matches():
    driver = Driver(topics=facts(orders=1, orders_eu=1, users=1))
    driver.beat("a", 0, subscribed_regex="orders.*", owned={}, rebalance_timeout_ms=1)
    assert driver.member("a").assigned == parts(orders=(0,), orders_eu=(0,))
    driver.beat("a", 1, subscribed_regex="", subscribed_names=("users",))
    driver.beat("a", 1, owned={})
    assert driver.member("a").assigned == parts(users=(0,))


def test_an_expression_matches_what_a_member_may_know_of():
    driver = Driver(topics=facts(orders=1, orders_eu=1))
    seen = {"orders"}
    sees = seen.__contains__
    driver.beat("a", 0, subscribed_regex="orders.*", owned={}, rebalance_timeout_ms=1, sees=sees)
    assert driver.member("a").assigned == parts(orders=(0,))
    assert driver.member("a").subscribed_regex == "orders.*"

    driver.change_topics(orders=1, orders_eu=1, orders_us=1, orders_asia=1)
    seen.add("orders_us")
    driver.beat("a", 1, sees=sees)
    assert driver.member("a").assigned == parts(orders=(0,), orders_us=(0,))

    seen.remove("orders")
    driver.beat("a", 2, sees=sees)
    driver.beat("a", 2, sees=sees, owned=parts(orders_us=(0,)))
    assert driver.member("a").assigned == parts(orders_us=(0,))


def test_a_restart_tells_nobody_what_they_may_not_know_of():
    driver = Driver(topics=facts(orders=1, orders_eu=1))
    sees = {"orders"}.__contains__
    driver.beat("a", 0, subscribed_regex="orders.*", owned={}, rebalance_timeout_ms=1, sees=sees)
    driver.restart()
    driver.change_topics(orders=2, orders_eu=2)
    driver.beat("a", 1, sees=sees)
    assert driver.member("a").assigned == parts(orders=(0, 1))


def test_who_sees_all_that_an_expression_matches_causes_no_rebalance():
    driver = Driver(topics=facts(orders=1))
    fields = {"subscribed_regex": "orders.*", "owned": {}, "rebalance_timeout_ms": 1}
    driver.beat("a", 0, sees=lambda _: True, **fields)
    driver.restart()
    driver.beat("a", 1, sees=lambda _: True)
    assert driver.group.record().generation == 1


def test_an_expression_that_is_none_changes_nothing(driver):
    with pytest.raises(InvalidRegexError):
        driver.enter("a", subscribed_regex="(")
    assert driver.group.member_count == 0
    driver.enter("a")
    with pytest.raises(InvalidRegexError):
        driver.beat("a", 1, subscribed_regex="(")
    assert driver.member("a").subscribed_regex == ""


def test_an_assignor_must_be_one_that_is_offered(driver):
    with pytest.raises(UnsupportedAssignorError, match="uniform, range"):
        driver.enter("a", server_assignor="sticky")
    assert driver.group.member_count == 0
    driver.enter("a", server_assignor="range")
    assert driver.group.record().protocol == "range"


def test_a_group_has_a_size():
    driver = Driver(consumer_size_max=1)
    driver.enter("a")
    with pytest.raises(GroupFullError):
        driver.enter("b")
    driver.enter("a")
    driver.beat("a", -1)
    driver.enter("b")


def test_a_member_that_wants_nothing_is_a_member(driver):
    driver.enter("a")
    answer = driver.beat("b", 0, subscribed_names=(), owned={}, rebalance_timeout_ms=1)
    assert (answer.member_epoch, answer.assignment) == (1, {})
    assert not driver.rebalanced


def test_a_static_member_returns_to_what_it_had():
    driver = Driver()
    driver.enter("a", instance_id="i")
    driver.enter("b")
    driver.beat("a", 1, instance_id="i")
    driver.beat("a", 1, instance_id="i", owned=parts(x=(0, 1)))
    driver.beat("b", 2)
    answer = driver.beat("a", -2, instance_id="i")
    assert answer.member_epoch == -2
    assert driver.saved
    assert driver.group.state == "Reconciling"
    back = driver.enter("a2", instance_id="i")
    assert (back.member_epoch, back.assignment) == (2, parts(x=(0, 1)))
    assert not driver.rebalanced
    assert driver.group.state == "Stable"
    assert driver.group.record().members.keys() == {"a2", "b"}
    with pytest.raises(FencedInstanceError):
        driver.beat("a", 2, instance_id="i")


def test_a_static_member_that_goes_for_a_while_gives_up_what_it_was_asked_to():
    driver = Driver()
    driver.enter("a", instance_id="i")
    driver.enter("b")
    driver.beat("a", 1, instance_id="i")
    driver.beat("a", -2, instance_id="i")
    assert driver.beat("b", 2).assignment == parts(x=(2, 3))
    assert driver.enter("a", instance_id="i").assignment == parts(x=(0, 1))


def test_a_static_member_that_stays_away_is_removed():
    driver = Driver()
    driver.enter("a", instance_id="i")
    driver.beat("a", -2, instance_id="i")
    driver.wait(driver.settings.consumer_session_timeout_ms)
    assert driver.group.state == "Empty"


def test_an_instance_has_one_member_at_a_time():
    driver = Driver()
    driver.enter("a", instance_id="i")
    with pytest.raises(UnreleasedInstanceError):
        driver.enter("b", instance_id="i")
    with pytest.raises(FencedInstanceError):
        driver.beat("b", 1, instance_id="i")
    with pytest.raises(FencedInstanceError):
        driver.beat("b", -1, instance_id="i")
    with pytest.raises(UnknownMemberError):
        driver.beat("a", 1, instance_id="other")
    assert driver.enter("a", instance_id="i").member_epoch == 1, "its own join, and again"
    driver.beat("a", -1, instance_id="i")
    assert driver.enter("b", instance_id="i").assignment == parts(x=(0, 1, 2, 3))


def test_nobody_returns_to_a_static_place_under_the_id_of_another_member():
    driver = Driver()
    driver.enter("a", instance_id="i")
    driver.beat("a", -2, instance_id="i")
    driver.enter("b")
    with pytest.raises(FencedInstanceError):
        driver.enter("b", instance_id="i")
    assert driver.group.member_count == 2


def test_an_instance_may_be_given_later_and_change():
    driver = Driver()
    driver.enter("a")
    driver.enter("a", instance_id="i")
    driver.enter("a", instance_id="j")
    driver.beat("a", -1, instance_id="j")
    assert driver.enter("b", instance_id="i").member_epoch == 3
