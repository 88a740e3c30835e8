"""The group clock is paused while heartbeats cannot be received or answered."""

from kafscale.broker.shards.pausable_clock import GAP_MS_MAX, PausableClock


class Clocks:
    """A wall clock that may be set, and a monotonic clock."""

    def __init__(self) -> None:
        self.wall_ms = 1_000_000
        self.monotonic_ms = 5_000
        self.clock = PausableClock(lambda: self.wall_ms, lambda: self.monotonic_ms)

    def advance(self, ms: int) -> int:
        self.wall_ms += ms
        self.monotonic_ms += ms
        return self.clock()


def test_clock_starts_at_wall_clock_time():
    clocks = Clocks()
    assert clocks.clock() == 1_000_000
    assert clocks.advance(300) == 1_000_300
    assert clocks.clock.skew_ms == 0


def test_clock_ignores_changes_of_the_wall_clock():
    clocks = Clocks()
    clocks.wall_ms += 3_600_000
    assert clocks.advance(300) == 1_000_300
    assert clocks.clock.skew_ms == 3_600_000


def test_clock_skips_the_time_of_a_suspended_process():
    clocks = Clocks()
    assert clocks.advance(GAP_MS_MAX) == 1_000_000 + GAP_MS_MAX
    assert clocks.advance(60_000) == 1_000_000 + GAP_MS_MAX
    assert clocks.advance(200) == 1_000_200 + GAP_MS_MAX
    assert clocks.clock.skew_ms == 60_000


def test_clock_can_be_paused():
    clocks = Clocks()
    clocks.clock.pause("a reason")
    assert [clocks.advance(250) for _ in range(4)] == [1_000_000] * 4
    clocks.clock.resume("a reason")
    assert clocks.advance(250) == 1_000_250
    assert clocks.clock.skew_ms == 1_000


def test_clock_is_paused_while_any_reason_is_left():
    clocks = Clocks()
    clocks.clock.pause("one")
    clocks.clock.pause("one")
    clocks.clock.pause("another")
    clocks.clock.resume("one")
    assert clocks.advance(250) == 1_000_000
    clocks.clock.resume("another")
    assert clocks.advance(250) == 1_000_250
