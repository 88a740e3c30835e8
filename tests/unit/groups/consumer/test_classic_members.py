"""Classic members among those of the new protocol: told the same, in the words they know."""

import pytest

from kafscale.errors import (
    FencedInstanceError,
    GroupFullError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from unit.groups.consumer.driver import REBALANCE_MS, SESSION_MS, Driver, parts


@pytest.fixture
def driver():
    """A group with one member of the new protocol, which has everything."""
    driver = Driver()
    driver.enter("new")
    return driver


def hand_over(driver, owned, epoch=1):
    """The member of the new protocol gives up all but some partitions."""
    driver.beat("new", epoch)
    return driver.beat("new", epoch, owned=parts(x=owned))


def settled(driver):
    """Both have settled in epoch 2: new with 0 and 1, old with 2 and 3."""
    driver.join("old")
    hand_over(driver, (0, 1))
    driver.join("old")
    driver.sync("old", 2)
    assert driver.group.state == "Stable"


def test_a_classic_member_is_answered_at_once_and_leads_nobody(driver):
    joined = driver.join("old", protocols=("range", "cooperative-sticky"))
    assert (joined.member_id, joined.generation, joined.protocol) == ("old", 2, "range")
    assert (joined.protocol_type, joined.leader, joined.members) == ("consumer", "", ())
    assert driver.saved
    assert driver.durable
    assert driver.sync("old", 2) == {}
    assert driver.durable


def test_it_is_called_back_once_all_that_it_waits_for_is_free(driver):
    driver.join("old")
    driver.sync("old", 2)
    driver.classic_beat("old", 2)
    hand_over(driver, (0, 1))
    with pytest.raises(RebalanceInProgressError):
        driver.classic_beat("old", 2)
    assert driver.join("old").generation == 2
    assert driver.sync("old", 2) == {"x": (2, 3)}
    driver.classic_beat("old", 2)
    assert not driver.saved


def test_a_cooperative_member_gives_up_first_and_joins_again(driver):
    settled(driver)
    driver.enter("third")
    driver.enter("fourth")
    with pytest.raises(RebalanceInProgressError):
        driver.classic_beat("old", 2)
    with pytest.raises(RebalanceInProgressError):
        driver.sync("old", 2)
    joined = driver.join("old", owned=[("x", (2, 3))])
    assert joined.generation == 2, "it stays in its epoch until it has given up"
    (kept,) = driver.sync("old", 2)["x"]
    assert driver.beat("third", 3).assignment is None
    assert driver.beat("fourth", 4).assignment is None
    with pytest.raises(RebalanceInProgressError):
        driver.classic_beat("old", 2)
    assert driver.join("old", owned=[("x", (kept,))]).generation == 4
    assert driver.sync("old", 4) == {"x": (kept,)}
    told = [driver.beat("third", 4).assignment, driver.beat("fourth", 4).assignment]
    assert parts(x={2, 3} - {kept}) in told


def test_an_eager_member_owns_nothing_when_it_joins(driver):
    settled(driver)
    driver.enter("third")
    driver.enter("fourth")
    assert driver.join("old").generation == 4
    (kept,) = driver.sync("old", 4)["x"]
    told = [driver.beat("third", 3).assignment, driver.beat("fourth", 4).assignment]
    assert parts(x={2, 3} - {kept}) in told


def test_a_member_without_an_id_is_given_one(driver):
    with pytest.raises(MemberIdRequiredError) as refused:
        driver.join("", must_know_id=True, fresh_id="fresh")
    assert refused.value.member_id == "fresh"
    assert driver.group.member_count == 1
    assert driver.join("", fresh_id="older").member_id == "older"
    assert driver.join("fresh", must_know_id=True).member_id == "fresh"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"protocol_type": "connect"}, InconsistentProtocolError),
        ({"protocols": ()}, InconsistentProtocolError),
        ({"protocols": ("sticky",)}, InconsistentProtocolError),
        ({"session_timeout_ms": 1}, InvalidSessionTimeoutError),
        ({"session_timeout_ms": 10**9}, InvalidSessionTimeoutError),
        ({"member": "unknown", "instance_id": "i"}, UnknownMemberError),
        ({"member": "unknown", "instance_id": "taken"}, FencedInstanceError),
    ],
)
def test_a_join_that_cannot_be_is_refused_and_changes_nothing(driver, wrong, error):
    driver.join("", fresh_id="static", instance_id="taken", protocols=("range", "roundrobin"))
    before = driver.group.record()
    with pytest.raises(error):
        driver.join(**({"member": "wrong"} | wrong))
    assert driver.group.record() == before


def test_bytes_that_are_no_subscription_are_refused(driver):
    with pytest.raises(InconsistentProtocolError):
        driver.offer("old", (("range", b"\0"),))
    assert driver.group.member_count == 1


def test_the_size_counts_for_classic_members_too():
    driver = Driver(consumer_size_max=1)
    driver.enter("new")
    with pytest.raises(GroupFullError):
        driver.join("old")


def test_who_asks_must_be_a_classic_member_in_its_generation(driver):
    driver.join("old")
    for ask in (driver.sync, driver.classic_beat):
        with pytest.raises(UnknownMemberError):
            ask("new", 1)
        with pytest.raises(UnknownMemberError):
            ask("nobody", 1)
        with pytest.raises(UnknownMemberError):
            ask("old", 2, instance_id="i")
        with pytest.raises(IllegalGenerationError):
            ask("old", 1)
    with pytest.raises(InconsistentProtocolError):
        driver.sync("old", 2, protocol="sticky")
    with pytest.raises(InconsistentProtocolError):
        driver.sync("old", 2, protocol_type="connect")
    assert driver.sync("old", 2, protocol="range", protocol_type="consumer") == {}


def test_a_static_member_is_replaced_and_its_past_fenced(driver):
    first = driver.join("", fresh_id="first", instance_id="i")
    hand_over(driver, (0, 1))
    second = driver.join("", fresh_id="second", instance_id="i")
    assert (second.generation, driver.rebalanced) == (first.generation, False)
    assert driver.sync("second", second.generation, instance_id="i") == {"x": (2, 3)}
    for ask in (driver.sync, driver.classic_beat):
        with pytest.raises(FencedInstanceError):
            ask("first", first.generation, instance_id="i")
    assert driver.join("second", instance_id="i").member_id == "second"


def test_a_static_member_may_come_back_in_the_other_protocol(driver):
    driver.join("", fresh_id="old", instance_id="i")
    hand_over(driver, (0, 1))
    driver.join("old", instance_id="i")
    assert driver.enter("new-2", instance_id="i").assignment == parts(x=(2, 3))
    assert not driver.member("new-2").is_classic
    assert driver.join("", fresh_id="old-2", instance_id="i").generation == 2
    assert driver.sync("old-2", 2, instance_id="i") == {"x": (2, 3)}


def test_who_does_not_join_again_or_sync_in_time_is_removed(driver):
    settled(driver)
    driver.enter("third")
    with pytest.raises(RebalanceInProgressError):
        driver.classic_beat("old", 2)
    called_back_ms = driver.now_ms
    while driver.now_ms < called_back_ms + REBALANCE_MS:
        with pytest.raises(RebalanceInProgressError):
            driver.classic_beat("old", 2)
        driver.wait(10_000)
    assert "old" not in driver.group.record().members

    driver.join("lazy")
    joined_ms = driver.now_ms
    while driver.now_ms < joined_ms + REBALANCE_MS:
        driver.group.check_commit("lazy", None, driver.member("lazy").member_epoch, driver.now_ms)
        driver.wait(10_000)
    assert "lazy" not in driver.group.record().members


def test_its_session_is_its_own(driver):
    driver.join("old", session_timeout_ms=SESSION_MS // 3, rebalance_timeout_ms=10**6)
    driver.wait(SESSION_MS // 3)
    assert driver.group.record().members.keys() == {"new"}


def test_a_member_may_change_its_protocol_and_is_free_of_the_deadlines_of_the_other(driver):
    driver.join("old")
    driver.beat("old", 2)
    assert not driver.member("old").is_classic
    for _ in range(2 * REBALANCE_MS // 20_000):
        driver.wait(20_000)
        driver.beat("old", driver.member("old").member_epoch)
    assert "old" in driver.group.record().members
    assert driver.join("old").member_id == "old"
    assert driver.member("old").is_classic
