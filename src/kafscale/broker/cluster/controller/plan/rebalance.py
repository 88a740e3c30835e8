"""Rebalance: which units move between live brokers, so that all have equally many.

Invariants: as few moves as possible, and none between brokers whose counts differ by one only. A
move that would not be started now is cancelled. A move under way to an overloaded broker is
redirected before another move is started.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kafscale.broker.cluster.controller.plan.load import LoadCounts
from kafscale.broker.cluster.controller.plan.unit import NO_BROKER, AssignmentUnit


def cancel_moves(units: Iterable[AssignmentUnit], load: LoadCounts) -> int:
    """Cancel moves that are no longer needed; return how many remain under way."""
    remaining = 0
    for unit in units:
        if unit.is_moving:
            if load.count(unit.target) > load.count(unit.owner):
                load.assign(unit, unit.owner)
            else:
                remaining += 1
    return remaining


def rebalance(units: Sequence[AssignmentUnit], load: LoadCounts, moves_max: int) -> int:
    """Start at most `moves_max` moves; return how many were started."""
    if load.is_balanced:
        return 0
    units_by_broker: defaultdict[int, list[AssignmentUnit]] = defaultdict(list)
    for unit in units:
        if unit.owner != NO_BROKER:
            units_by_broker[unit.target].append(unit)
    started = 0
    while not load.is_balanced:
        most_loaded, least_loaded = load.extremes()
        chosen = _choose_unit(
            units_by_broker[most_loaded],
            load,
            most_loaded,
            least_loaded,
            may_start=started < moves_max,
        )
        if chosen is None:
            break
        was_moving = chosen.is_moving
        units_by_broker[most_loaded].remove(chosen)
        units_by_broker[least_loaded].append(chosen)
        load.assign(chosen, least_loaded)
        started += chosen.is_moving - was_moving
    return started


def _choose_unit(
    units: Iterable[AssignmentUnit],
    load: LoadCounts,
    most_loaded: int,
    least_loaded: int,
    *,
    may_start: bool,
) -> AssignmentUnit | None:
    """The unit to move: one that moves already, or one whose topic is spread more evenly by it."""

    def rank(unit: AssignmentUnit) -> tuple[bool, int, str, int]:
        gain = load.count_of_topic(unit.topic, most_loaded) - load.count_of_topic(
            unit.topic, least_loaded
        )
        return unit.target == unit.owner, -gain, unit.topic, unit.partition

    return min(
        (unit for unit in units if may_start or unit.target != unit.owner), key=rank, default=None
    )
