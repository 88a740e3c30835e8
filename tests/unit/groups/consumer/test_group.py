"""What is the same for all members: time, topics, offsets, administrators, other coordinators."""

import pytest

from kafscale.errors import (
    CoordinatorUnavailableError,
    FencedInstanceError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.effects import Rebalanced, Save
from kafscale.groups.events import Tick
from kafscale.groups.group import Group
from kafscale.groups.model import Kind
from unit.groups.consumer.driver import REBALANCE_MS, SESSION_MS, Driver, facts, parts


@pytest.fixture
def driver():
    driver = Driver(consumer_session_timeout_ms=SESSION_MS)
    driver.enter("a")
    return driver


def test_a_new_group_is_empty_and_waits_for_nothing():
    group: Group = ConsumerGroup("g", GroupSettings(), {}, 5)
    assert (group.group_id, group.kind, group.state) == ("g", Kind.CONSUMER, "Empty")
    assert (group.member_count, group.deadline_ms) == (0, None)
    assert group.record().state_since_ms == 5
    assert group.handle(Tick(), 10) == []
    assert group.dismiss(CoordinatorUnavailableError("later"), 10) == []


def test_who_is_silent_for_too_long_is_removed(driver):
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS
    driver.enter("b", "y")
    driver.wait(SESSION_MS - 1)
    assert driver.group.member_count == 2
    driver.beat("b", 2)
    driver.wait(1)
    assert driver.effects == [Rebalanced(3, 1, "a member's session expired"), Save()]
    assert driver.group.record().members.keys() == {"b"}
    assert driver.group.deadline_ms == driver.now_ms - 1 + SESSION_MS, "b was heard of before"


def test_a_tick_that_comes_too_early_does_no_harm(driver):
    driver.wait(SESSION_MS // 2)
    driver.beat("a", 1)
    assert driver.wait(SESSION_MS // 2) == [], "it was due, but the member has been heard of"
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS // 2


def test_who_does_not_give_up_its_partitions_in_time_is_removed(driver):
    driver.enter("b")
    driver.beat("a", 1)
    for _ in range(REBALANCE_MS // 20_000):
        assert driver.beat("a", 1, owned=parts(x=(0, 1, 2, 3))).member_epoch == 1
        driver.beat("b", 2)
        driver.wait(20_000)
    assert driver.effects == [
        Rebalanced(3, 1, "a member did not give up its partitions in time"),
        Save(),
    ]
    assert driver.beat("b", 2).assignment == parts(x=(0, 1, 2, 3))


def test_who_gives_up_in_time_is_no_longer_timed(driver):
    driver.enter("b")
    driver.beat("a", 1)
    driver.beat("a", 1, owned=parts(x=(0, 1)))
    for _ in range(4):
        driver.wait(20_000)
        driver.beat("a", 2)
        driver.beat("b", 2)
    assert driver.group.member_count == 2


def test_topics_that_nobody_reads_may_change(driver):
    assert driver.change_topics(x=4, y=1) == []
    assert driver.group.state == "Stable"


@pytest.mark.parametrize("counts", [{"x": 6}, {}], ids=["more partitions", "deleted"])
def test_topics_that_somebody_reads_make_a_new_epoch(driver, counts):
    assert driver.change_topics(**counts) == [Rebalanced(2, 1, "topics changed"), Save()]
    assert driver.group.state == "Assigning"
    driver.beat("a", 1)
    driver.beat("a", 1, owned={})
    assert driver.group.state == "Stable"
    assert driver.member("a").assigned == {
        name.encode(): frozenset(range(count)) for name, count in counts.items()
    }


def test_new_topics_are_matched_again():
    driver = Driver()
    driver.beat("a", 0, subscribed_regex="y.*", owned={}, rebalance_timeout_ms=1)
    assert driver.change_topics(x=1, y2=2) != []
    assert driver.beat("a", 1).assignment == parts(y2=(0, 1))


def test_an_empty_group_does_not_mind_topics():
    driver = Driver()
    assert driver.change_topics() == []


def test_commits_are_for_members_in_their_epoch(driver):
    commit = driver.group.check_commit
    driver.join("old")
    commit("a", None, 1, driver.now_ms)
    commit("old", None, 2, driver.now_ms)
    with pytest.raises(UnknownMemberError):
        commit("nobody", None, 1, driver.now_ms)
    with pytest.raises(UnknownMemberError):
        commit("", None, -1, driver.now_ms)
    with pytest.raises(StaleMemberEpochError):
        commit("a", None, 2, driver.now_ms)
    with pytest.raises(IllegalGenerationError):
        commit("old", None, 1, driver.now_ms)


def test_who_commits_is_alive(driver):
    driver.wait(SESSION_MS - 1)
    driver.group.check_commit("a", None, 1, driver.now_ms)
    driver.wait(1)
    assert driver.group.member_count == 1


def test_without_members_anybody_may_commit_for_itself():
    group = Driver().group
    group.check_commit("", None, -1, 0)
    with pytest.raises(UnknownMemberError):
        group.check_commit("a", None, 1, 0)


def test_fetches_are_for_members_in_their_epoch_and_for_whoever_says_nothing(driver):
    fetch = driver.group.check_fetch
    fetch("a", 1)
    fetch(None, -1)
    with pytest.raises(UnknownMemberError):
        fetch("nobody", 1)
    with pytest.raises(UnknownMemberError):
        fetch(None, 0)
    with pytest.raises(StaleMemberEpochError):
        fetch("a", 2)


def test_it_is_known_what_the_group_reads(driver):
    driver.beat("b", 0, subscribed_regex="y.*", owned={}, rebalance_timeout_ms=1)
    subscribes_to = driver.group.subscribes_to
    assert [subscribes_to(name) for name in ("x", "y", "yes", "z")] == [True, True, True, False]


def test_an_administrator_sends_members_away(driver):
    driver.enter("b", "y", instance_id="i")
    driver.enter("c", "y", instance_id="j")
    errors = driver.leave(("", "i"), ("nobody", None), ("b", "j"), ("", "k"), ("a", None))
    assert list(map(type, errors)) == [
        type(None),
        UnknownMemberError,
        FencedInstanceError,
        UnknownMemberError,
        type(None),
    ]
    assert driver.group.record().members.keys() == {"c"}
    assert driver.durable
    assert driver.leave(("a", None)) != [None]
    assert not driver.saved


def test_it_is_known_since_when_the_group_is_in_its_state(driver):
    since_ms = driver.now_ms
    driver.now_ms += 10
    driver.beat("a", 1, client_id="renamed")
    assert (driver.saved, driver.group.record().state_since_ms) == (True, since_ms)
    driver.beat("a", -1)
    record = driver.group.record()
    assert (record.state, record.state_since_ms) == ("Empty", since_ms + 10)


def test_another_coordinator_goes_on_where_the_first_one_was():
    driver = Driver(topics=facts(x=4, y=1))
    driver.enter("a", instance_id="i", rack_id="r", client_id="c", client_host="h")
    driver.enter("b", server_assignor="range", subscribed_regex="y")
    driver.join("c")
    driver.beat("a", 1, instance_id="i")
    before = driver.group.record()
    driver.restart()
    after = driver.group.record()
    assert before == after
    assert (before.generation, before.assignment_epoch, before.protocol) == (3, 3, "range")
    assert before.members["a"].revoking
    done = driver.beat("a", 1, instance_id="i", owned=before.members["a"].assigned)
    assert done.member_epoch == 3
    assert driver.beat("b", 2, owned={}).member_epoch == 3


def test_another_coordinator_begins_all_deadlines_again(driver):
    driver.enter("b")
    driver.beat("a", 1)
    driver.now_ms += 10**6
    driver.restart()
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS
    for _ in range(REBALANCE_MS // 20_000):
        assert driver.group.member_count == 2
        driver.beat("a", 1)
        driver.beat("b", 2)
        driver.wait(20_000)
    assert driver.group.record().members.keys() == {"b"}


def test_another_coordinator_finds_topics_that_changed_before_it_came(driver):
    driver.restart()
    assert driver.group.state == "Stable"
    driver.topics = facts(x=5)
    driver.restart()
    assert driver.group.state == "Assigning"
    assert driver.beat("a", 1).assignment == parts(x=range(5))
