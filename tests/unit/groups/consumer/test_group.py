"""What both kinds of members share: time, topics, offsets, administrators, restarts."""

import pytest

from kafscale.errors import (
    CoordinatorUnavailableError,
    FencedInstanceError,
    IllegalGenerationError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.effects import Rebalanced, Save
from kafscale.groups.events import Tick
from kafscale.groups.group import Group, GroupSettings
from kafscale.groups.model import GroupType
from unit.groups.consumer.driver import REBALANCE_MS, SESSION_MS, Driver, partitions, topic_infos


@pytest.fixture
def driver():
    driver = Driver(consumer_session_timeout_ms=SESSION_MS)
    driver.join_consumer("a")
    return driver


def test_new_group_is_empty_without_deadline():
    group: Group = ConsumerGroup("g", GroupSettings(), {}, 5)
    assert (group.group_id, group.group_type, group.state) == ("g", GroupType.CONSUMER, "Empty")
    assert (group.member_count, group.deadline_ms) == (0, None)
    assert group.record().state_since_ms == 5
    assert group.handle(Tick(), 10) == []
    assert group.abort(CoordinatorUnavailableError("later"), 10) == []


def test_member_is_removed_when_its_session_expires(driver):
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS
    driver.join_consumer("b", "y")
    driver.wait(SESSION_MS - 1)
    assert driver.group.member_count == 2
    driver.heartbeat("b", 2)
    driver.wait(1)
    assert driver.effects == [Rebalanced(3, 1, "a member's session expired"), Save()]
    assert driver.group.record().members.keys() == {"b"}
    assert driver.group.deadline_ms == driver.now_ms - 1 + SESSION_MS, (
        "b has sent a heartbeat before"
    )


def test_early_tick_has_no_effect(driver):
    driver.wait(SESSION_MS // 2)
    driver.heartbeat("a", 1)
    assert driver.wait(SESSION_MS // 2) == [], "it was due, but the member has sent a heartbeat"
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS // 2


def test_member_that_does_not_revoke_in_time_is_removed(driver):
    driver.join_consumer("b")
    driver.heartbeat("a", 1)
    for _ in range(REBALANCE_MS // 20_000):
        assert driver.heartbeat("a", 1, owned=partitions(x=(0, 1, 2, 3))).member_epoch == 1
        driver.heartbeat("b", 2)
        driver.wait(20_000)
    assert driver.effects == [
        Rebalanced(3, 1, "a member did not revoke its partitions in time"),
        Save(),
    ]
    assert driver.heartbeat("b", 2).assignment == partitions(x=(0, 1, 2, 3))


def test_revocation_in_time_clears_the_deadline(driver):
    driver.join_consumer("b")
    driver.heartbeat("a", 1)
    driver.heartbeat("a", 1, owned=partitions(x=(0, 1)))
    for _ in range(4):
        driver.wait(20_000)
        driver.heartbeat("a", 2)
        driver.heartbeat("b", 2)
    assert driver.group.member_count == 2


def test_changes_of_other_topics_are_ignored(driver):
    assert driver.change_topics(x=4, y=1) == []
    assert driver.group.state == "Stable"


@pytest.mark.parametrize("counts", [{"x": 6}, {}], ids=["more partitions", "deleted"])
def test_changes_of_subscribed_topics_start_a_new_epoch(driver, counts):
    assert driver.change_topics(**counts) == [Rebalanced(2, 1, "topics changed"), Save()]
    assert driver.group.state == "Assigning"
    driver.heartbeat("a", 1)
    driver.heartbeat("a", 1, owned={})
    assert driver.group.state == "Stable"
    assert driver.member("a").assigned == {
        name.encode(): frozenset(range(count)) for name, count in counts.items()
    }


def test_new_topics_are_matched_with_the_regex():
    driver = Driver()
    driver.heartbeat("a", 0, subscribed_regex="y.*", owned={}, rebalance_timeout_ms=1)
    assert driver.change_topics(x=1, y2=2) != []
    assert driver.heartbeat("a", 1).assignment == partitions(y2=(0, 1))


def test_empty_group_ignores_topic_changes():
    driver = Driver()
    assert driver.change_topics() == []


def test_commit_requires_the_members_epoch(driver):
    commit = driver.group.check_commit
    driver.join("old")
    commit("a", None, 1, driver.now_ms)
    commit("old", None, 2, driver.now_ms)
    with pytest.raises(UnknownMemberError):
        commit("unknown", None, 1, driver.now_ms)
    with pytest.raises(UnknownMemberError):
        commit("", None, -1, driver.now_ms)
    with pytest.raises(StaleMemberEpochError):
        commit("a", None, 2, driver.now_ms)
    with pytest.raises(IllegalGenerationError):
        commit("old", None, 1, driver.now_ms)


def test_commit_counts_as_heartbeat(driver):
    driver.wait(SESSION_MS - 1)
    driver.group.check_commit("a", None, 1, driver.now_ms)
    driver.wait(1)
    assert driver.group.member_count == 1


def test_empty_group_accepts_commits_without_member():
    group = Driver().group
    group.check_commit("", None, -1, 0)
    with pytest.raises(UnknownMemberError):
        group.check_commit("a", None, 1, 0)


def test_fetch_requires_the_members_epoch_if_given(driver):
    fetch = driver.group.check_fetch
    fetch("a", 1)
    fetch(None, -1)
    with pytest.raises(UnknownMemberError):
        fetch("unknown", 1)
    with pytest.raises(UnknownMemberError):
        fetch(None, 0)
    with pytest.raises(StaleMemberEpochError):
        fetch("a", 2)


def test_group_subscribes_to_names_and_regex(driver):
    driver.heartbeat("b", 0, subscribed_regex="y.*", owned={}, rebalance_timeout_ms=1)
    subscribes_to = driver.group.subscribes_to
    assert [subscribes_to(name) for name in ("x", "y", "yes", "z")] == [True, True, True, False]


def test_administrator_removes_members(driver):
    driver.join_consumer("b", "y", instance_id="i")
    driver.join_consumer("c", "y", instance_id="j")
    errors = driver.leave(("", "i"), ("unknown", None), ("b", "j"), ("", "k"), ("a", None))
    assert list(map(type, errors)) == [
        type(None),
        UnknownMemberError,
        FencedInstanceError,
        UnknownMemberError,
        type(None),
    ]
    assert driver.group.record().members.keys() == {"c"}
    assert driver.is_durable
    assert driver.leave(("a", None)) != [None]
    assert not driver.saved


def test_state_since_changes_with_the_state(driver):
    since_ms = driver.now_ms
    driver.now_ms += 10
    driver.heartbeat("a", 1, client_id="renamed")
    assert (driver.saved, driver.group.record().state_since_ms) == (True, since_ms)
    driver.heartbeat("a", -1)
    record = driver.group.record()
    assert (record.state, record.state_since_ms) == ("Empty", since_ms + 10)


def test_restored_group_continues():
    driver = Driver(topics=topic_infos(x=4, y=1))
    driver.join_consumer("a", instance_id="i", rack_id="r", client_id="c", client_host="h")
    driver.join_consumer("b", server_assignor="range", subscribed_regex="y")
    driver.join("c")
    driver.heartbeat("a", 1, instance_id="i")
    before = driver.group.record()
    driver.restart()
    after = driver.group.record()
    assert before == after
    assert (before.generation, before.assignment_epoch, before.protocol) == (3, 3, "range")
    assert before.members["a"].revoking
    done = driver.heartbeat("a", 1, instance_id="i", owned=before.members["a"].assigned)
    assert done.member_epoch == 3
    assert driver.heartbeat("b", 2, owned={}).member_epoch == 3


def test_restored_group_restarts_deadlines(driver):
    driver.join_consumer("b")
    driver.heartbeat("a", 1)
    driver.now_ms += 10**6
    driver.restart()
    assert driver.group.deadline_ms == driver.now_ms + SESSION_MS
    for _ in range(REBALANCE_MS // 20_000):
        assert driver.group.member_count == 2
        driver.heartbeat("a", 1)
        driver.heartbeat("b", 2)
        driver.wait(20_000)
    assert driver.group.record().members.keys() == {"b"}


def test_restored_group_detects_topic_changes(driver):
    driver.restart()
    assert driver.group.state == "Stable"
    driver.topics = topic_infos(x=5)
    driver.restart()
    assert driver.group.state == "Assigning"
    assert driver.heartbeat("a", 1).assignment == partitions(x=range(5))
