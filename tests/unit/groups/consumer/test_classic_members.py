"""Classic members of a consumer group: the same assignments in the classic protocol."""

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
from unit.groups.consumer.driver import REBALANCE_MS, SESSION_MS, Driver, partitions


@pytest.fixture
def driver():
    """A group with one member of the consumer protocol, which owns everything."""
    driver = Driver()
    driver.join_consumer("new")
    return driver


def transfer(driver, owned, epoch=1):
    """The member of the consumer protocol revokes all but some partitions."""
    driver.heartbeat("new", epoch)
    return driver.heartbeat("new", epoch, owned=partitions(x=owned))


def settled(driver):
    """Both are reconciled in epoch 2: new with 0 and 1, old with 2 and 3."""
    driver.join("old")
    transfer(driver, (0, 1))
    driver.join("old")
    driver.sync("old", 2)
    assert driver.group.state == "Stable"


def test_classic_member_gets_a_response_without_leader(driver):
    joined = driver.join("old", protocols=("range", "cooperative-sticky"))
    assert (joined.member_id, joined.generation, joined.protocol) == ("old", 2, "range")
    assert (joined.protocol_type, joined.leader, joined.members) == ("consumer", "", ())
    assert driver.saved
    assert driver.is_durable
    assert driver.sync("old", 2) == {}
    assert driver.is_durable


def test_classic_member_rejoins_once_its_partitions_are_unowned(driver):
    driver.join("old")
    driver.sync("old", 2)
    driver.classic_heartbeat("old", 2)
    transfer(driver, (0, 1))
    with pytest.raises(RebalanceInProgressError):
        driver.classic_heartbeat("old", 2)
    assert driver.join("old").generation == 2
    assert driver.sync("old", 2) == {"x": (2, 3)}
    driver.classic_heartbeat("old", 2)
    assert not driver.saved


def test_cooperative_member_revokes_first_and_rejoins(driver):
    settled(driver)
    driver.join_consumer("third")
    driver.join_consumer("fourth")
    with pytest.raises(RebalanceInProgressError):
        driver.classic_heartbeat("old", 2)
    with pytest.raises(RebalanceInProgressError):
        driver.sync("old", 2)
    joined = driver.join("old", owned=[("x", (2, 3))])
    assert joined.generation == 2, "it stays in its epoch until it has revoked"
    (kept,) = driver.sync("old", 2)["x"]
    assert driver.heartbeat("third", 3).assignment is None
    assert driver.heartbeat("fourth", 4).assignment is None
    with pytest.raises(RebalanceInProgressError):
        driver.classic_heartbeat("old", 2)
    assert driver.join("old", owned=[("x", (kept,))]).generation == 4
    assert driver.sync("old", 4) == {"x": (kept,)}
    assignments = [
        driver.heartbeat("third", 4).assignment,
        driver.heartbeat("fourth", 4).assignment,
    ]
    assert partitions(x={2, 3} - {kept}) in assignments


def test_eager_member_owns_nothing_when_it_joins(driver):
    settled(driver)
    driver.join_consumer("third")
    driver.join_consumer("fourth")
    assert driver.join("old").generation == 4
    (kept,) = driver.sync("old", 4)["x"]
    assignments = [
        driver.heartbeat("third", 3).assignment,
        driver.heartbeat("fourth", 4).assignment,
    ]
    assert partitions(x={2, 3} - {kept}) in assignments


def test_member_without_id_gets_one(driver):
    with pytest.raises(MemberIdRequiredError) as refused:
        driver.join("", requires_known_member_id=True, new_member_id="fresh")
    assert refused.value.member_id == "fresh"
    assert driver.group.member_count == 1
    assert driver.join("", new_member_id="older").member_id == "older"
    assert driver.join("fresh", requires_known_member_id=True).member_id == "fresh"


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
def test_rejected_join_changes_nothing(driver, wrong, error):
    driver.join("", new_member_id="static", instance_id="taken", protocols=("range", "roundrobin"))
    before = driver.group.record()
    with pytest.raises(error):
        driver.join(**({"member": "wrong"} | wrong))
    assert driver.group.record() == before


def test_invalid_subscription_bytes_are_rejected(driver):
    with pytest.raises(InconsistentProtocolError):
        driver.update_protocols("old", (("range", b"\0"),))
    assert driver.group.member_count == 1


def test_size_limit_applies_to_classic_members():
    driver = Driver(consumer_size_max=1)
    driver.join_consumer("new")
    with pytest.raises(GroupFullError):
        driver.join("old")


def test_classic_requests_require_a_classic_member_in_its_generation(driver):
    driver.join("old")
    for ask in (driver.sync, driver.classic_heartbeat):
        with pytest.raises(UnknownMemberError):
            ask("new", 1)
        with pytest.raises(UnknownMemberError):
            ask("unknown", 1)
        with pytest.raises(UnknownMemberError):
            ask("old", 2, instance_id="i")
        with pytest.raises(IllegalGenerationError):
            ask("old", 1)
    with pytest.raises(InconsistentProtocolError):
        driver.sync("old", 2, protocol="sticky")
    with pytest.raises(InconsistentProtocolError):
        driver.sync("old", 2, protocol_type="connect")
    assert driver.sync("old", 2, protocol="range", protocol_type="consumer") == {}


def test_static_member_is_replaced_and_the_old_one_fenced(driver):
    first = driver.join("", new_member_id="first", instance_id="i")
    transfer(driver, (0, 1))
    second = driver.join("", new_member_id="second", instance_id="i")
    assert (second.generation, driver.rebalanced) == (first.generation, False)
    assert driver.sync("second", second.generation, instance_id="i") == {"x": (2, 3)}
    for ask in (driver.sync, driver.classic_heartbeat):
        with pytest.raises(FencedInstanceError):
            ask("first", first.generation, instance_id="i")
    assert driver.join("second", instance_id="i").member_id == "second"


def test_static_member_may_change_its_protocol(driver):
    driver.join("", new_member_id="old", instance_id="i")
    transfer(driver, (0, 1))
    driver.join("old", instance_id="i")
    assert driver.join_consumer("new-2", instance_id="i").assignment == partitions(x=(2, 3))
    assert not driver.member("new-2").is_classic
    assert driver.join("", new_member_id="old-2", instance_id="i").generation == 2
    assert driver.sync("old-2", 2, instance_id="i") == {"x": (2, 3)}


def test_member_that_does_not_rejoin_or_sync_in_time_is_removed(driver):
    settled(driver)
    driver.join_consumer("third")
    with pytest.raises(RebalanceInProgressError):
        driver.classic_heartbeat("old", 2)
    called_back_ms = driver.now_ms
    while driver.now_ms < called_back_ms + REBALANCE_MS:
        with pytest.raises(RebalanceInProgressError):
            driver.classic_heartbeat("old", 2)
        driver.wait(10_000)
    assert "old" not in driver.group.record().members

    driver.join("lazy")
    joined_ms = driver.now_ms
    while driver.now_ms < joined_ms + REBALANCE_MS:
        driver.group.check_commit("lazy", None, driver.member("lazy").member_epoch, driver.now_ms)
        driver.wait(10_000)
    assert "lazy" not in driver.group.record().members


def test_classic_member_has_its_own_session_timeout(driver):
    driver.join("old", session_timeout_ms=SESSION_MS // 3, rebalance_timeout_ms=10**6)
    driver.wait(SESSION_MS // 3)
    assert driver.group.record().members.keys() == {"new"}


def test_change_of_protocol_clears_classic_deadlines(driver):
    driver.join("old")
    driver.heartbeat("old", 2)
    assert not driver.member("old").is_classic
    for _ in range(2 * REBALANCE_MS // 20_000):
        driver.wait(20_000)
        driver.heartbeat("old", driver.member("old").member_epoch)
    assert "old" in driver.group.record().members
    assert driver.join("old").member_id == "old"
    assert driver.member("old").is_classic
