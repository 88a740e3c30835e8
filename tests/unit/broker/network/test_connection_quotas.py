"""The door: who is let in, and how many."""

import pytest

from kafscale.broker.network.connection_quotas import Door, overrides
from kafscale.errors import ConfigError


def waited(door, now):
    """How long somebody had to wait, who came if they had not to."""
    seconds = door.wait_seconds(now)
    if not seconds:
        door.pay()
    return seconds


def test_there_is_room_for_so_many_and_no_more():
    door = Door(2)
    assert [door.enter("a"), door.enter("b"), door.enter("c")] == [True, True, False]
    door.leave("a")
    assert door.enter("c")
    assert door.count == 2


def test_an_address_has_a_limit_that_others_do_not_share():
    door = Door(100, per_host_max=1, per_host_overrides={"busy": 3})
    assert [door.enter("a"), door.enter("a"), door.enter("b")] == [True, False, True]
    assert [door.enter("busy") for _ in range(4)] == [True, True, True, False]
    door.leave("a")
    assert door.enter("a")


def test_who_is_refused_is_not_counted():
    door = Door(100, per_host_max=1)
    door.enter("a")
    for _ in range(10):
        door.enter("a")
    assert door.count == 1
    door.leave("a")
    assert door.count == 0


def test_newcomers_beyond_the_rate_wait_outside():
    door = Door(100, rate_max=2)
    assert [waited(door, 10.0) for _ in range(3)] == [0.0, 0.0, 0.5]
    assert [waited(door, 10.5) for _ in range(2)] == [0.0, 0.5]


def test_looking_whether_somebody_may_come_costs_nothing():
    door = Door(100, rate_max=2)
    assert {door.wait_seconds(10.0) for _ in range(10)} == {0.0}


def test_a_quiet_time_saves_up_no_more_than_a_second():
    door = Door(100, rate_max=2)
    waited(door, 0.0)
    assert [waited(door, 1000.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_without_a_rate_nobody_waits():
    assert Door(1).wait_seconds(0.0) == 0.0


def test_a_limit_without_an_address_is_refused():
    with pytest.raises(ConfigError, match="maxConnectionsPerIpOverrides"):
        overrides([":5"])
