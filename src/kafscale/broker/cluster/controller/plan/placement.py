"""Placement: the target broker of each unit, and the moves that balance the brokers.

Invariants: a unit that was requested for certain brokers goes to the first of them that can own it,
and stays there. Any other unit with an owner stays, or continues to move to its transfer target
while that broker is there. A unit that has lost its owner returns to the broker of the same id, if
that has rejoined and is below its target. All other units go to brokers below their target, with
each topic spread widely. Units are placed in order, so that the same input gives the same plan;
units that wait for a fence are placed as well, and their share stays reserved.

Then moves to requested brokers are started, before others. Of the other units as few as possible
move, and none between brokers whose counts differ by one only. A move that would not be started now
is cancelled. A move under way to an overloaded broker is redirected before another move is started.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafscale.broker.cluster.controller.plan.load import LoadCounts
from kafscale.broker.cluster.controller.plan.units import AssignmentUnit
from kafscale.metadata.schema.model import NO_BROKER, BrokerInfo


def place_units(units: Sequence[AssignmentUnit], brokers: Mapping[int, BrokerInfo]) -> LoadCounts:
    """Give all units of one kind a target; there is at least one broker."""
    # Draining brokers take nothing, unless all are draining.
    staying = {broker.id: broker for broker in brokers.values() if not broker.is_draining}
    load = LoadCounts((staying or brokers).values(), len(units))
    unowned: list[AssignmentUnit] = []
    new: list[AssignmentUnit] = []
    for unit in units:
        target = _current_target(unit, staying, load)
        if target != NO_BROKER:
            load.assign(unit, target)
        else:
            (unowned if unit.before else new).append(unit)
    for unit in _return_to_last_owners(unowned, load):
        load.assign(unit, load.choose(unit.topic, load.below_target()))
    _place_new(new, load)
    return load


def _current_target(
    unit: AssignmentUnit, staying: Mapping[int, BrokerInfo], load: LoadCounts
) -> int:
    """The broker that it was requested for, that has it, or that it moves to.

    `NO_BROKER` if it needs a new one.
    """
    if unit.preferred != NO_BROKER:
        return unit.preferred
    if unit.owner == NO_BROKER:
        return NO_BROKER
    assert unit.before is not None
    reassigning_to = unit.before.reassigning_to
    if reassigning_to is not None and reassigning_to in staying:
        return reassigning_to
    return unit.owner if unit.owner in load else NO_BROKER


def _return_to_last_owners(unowned: list[AssignmentUnit], load: LoadCounts) -> list[AssignmentUnit]:
    """Assign units to their last owners where these have rejoined; return the others."""
    others: list[AssignmentUnit] = []
    for unit in unowned:
        assert unit.before is not None
        last = unit.before.broker_id
        if last in load and load.is_below_target(last):
            load.assign(unit, last)
        else:
            others.append(unit)
    return others


def _place_new(new: list[AssignmentUnit], load: LoadCounts) -> None:
    # While a broker is overloaded, moves are due anyway. A new topic is then spread over all
    # brokers: on those below their target alone, all of it might end up on a broker that has just
    # joined.
    is_overloaded = load.is_overloaded
    for unit in new:
        candidates = load.all_brokers() if is_overloaded else load.below_target()
        load.assign(unit, load.choose(unit.topic, candidates))


# --- moves --------------------------------------------------------------------------------------


def cancel_moves(units: Iterable[AssignmentUnit], load: LoadCounts) -> int:
    """Cancel moves that are no longer needed; return how many remain under way."""
    remaining = 0
    for unit in units:
        if unit.is_moving and _is_started(unit):
            if unit.preferred == NO_BROKER and load.count(unit.target) > load.count(unit.owner):
                load.assign(unit, unit.owner)
            else:
                remaining += 1
    return remaining


def start_requested_moves(units: Iterable[AssignmentUnit], moves_max: int) -> int:
    """Start at most `moves_max` moves to requested brokers; return how many were started."""
    started = 0
    for unit in units:
        if unit.preferred != NO_BROKER and unit.is_moving and not _is_started(unit):
            if started < moves_max:
                started += 1
            else:
                unit.is_waiting = True
    return started


def _is_started(unit: AssignmentUnit) -> bool:
    return unit.before is not None and unit.before.reassigning_to is not None


def rebalance(units: Sequence[AssignmentUnit], load: LoadCounts, moves_max: int) -> int:
    """Start at most `moves_max` moves; return how many were started."""
    if load.is_balanced:
        return 0
    units_by_broker: defaultdict[int, list[AssignmentUnit]] = defaultdict(list)
    for unit in units:
        if unit.owner != NO_BROKER and unit.preferred == NO_BROKER:
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
