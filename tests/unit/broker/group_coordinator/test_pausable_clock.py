"""The clock of groups: it runs, and stands still while nobody could be heard or answered."""

from kafscale.broker.group_coordinator.pausable_clock import GAP_MS_MAX, GroupClock


class World:
    """Two clocks, one of which may be set."""

    def __init__(self) -> None:
        self.wall_ms = 1_000_000
        self.steady_ms = 5_000
        self.clock = GroupClock(lambda: self.wall_ms, lambda: self.steady_ms)

    def passes(self, ms: int) -> int:
        self.wall_ms += ms
        self.steady_ms += ms
        return self.clock()


def test_it_begins_with_the_time_of_the_world_and_runs_with_it():
    world = World()
    assert world.clock() == 1_000_000
    assert world.passes(300) == 1_000_300
    assert world.clock.skew_ms == 0


def test_it_does_not_care_when_the_clock_of_the_world_is_set():
    world = World()
    world.wall_ms += 3_600_000
    assert world.passes(300) == 1_000_300
    assert world.clock.skew_ms == 3_600_000


def test_what_passes_while_the_process_does_not_run_does_not_count():
    world = World()
    assert world.passes(GAP_MS_MAX) == 1_000_000 + GAP_MS_MAX
    assert world.passes(60_000) == 1_000_000 + GAP_MS_MAX
    assert world.passes(200) == 1_000_200 + GAP_MS_MAX
    assert world.clock.skew_ms == 60_000


def test_it_can_be_stopped():
    world = World()
    world.clock.stop("a reason")
    assert [world.passes(250) for _ in range(4)] == [1_000_000] * 4
    world.clock.go_on("a reason")
    assert world.passes(250) == 1_000_250
    assert world.clock.skew_ms == 1_000


def test_it_stands_still_as_long_as_there_is_any_reason():
    world = World()
    world.clock.stop("one")
    world.clock.stop("one")
    world.clock.stop("another")
    world.clock.go_on("one")
    assert world.passes(250) == 1_000_000
    world.clock.go_on("another")
    assert world.passes(250) == 1_000_250
