"""Placement: the target broker of each unit.

Invariants: a unit with an owner stays, or continues to move to its transfer target while that
broker is there. A unit that has lost its owner returns to the broker of the same id, if that has
rejoined and is below its target. All other units go to brokers below their target, with each topic
spread widely. Units are placed in order, so that the same input gives the same plan; units that
wait for a fence are placed as well, and their share stays reserved.
"""

from collections.abc import Mapping, Sequence

from kafscale.broker.cluster.controller.plan.load import LoadCounts
from kafscale.broker.cluster.controller.plan.unit import NO_BROKER, AssignmentUnit
from kafscale.metadata.schema.model import BrokerInfo


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
    """The broker that has it or that it moves to; `NO_BROKER` if it needs a new one."""
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
