"""The table of transitions: what each step does in each state, and where it may lead.

A step that is refused raises an error, which is what its sender is told, and leaves the group as it
is. Which state may follow which directly is in `state`; here is where an event ends. So a group of
one goes from Stable to CompletingRebalance at once, for when its leader joins again, nobody else
has to be waited for; and to Empty when that one leaves.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from kafscale.errors import CoordinatorUnavailableError, UnknownMemberError
from kafscale.groups.classic import heartbeat, join, leave, sync
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.state import State
from kafscale.groups.classic.step import Step
from kafscale.groups.events import Event

EMPTY: Final = State.EMPTY
PREPARING: Final = State.PREPARING
COMPLETING: Final = State.COMPLETING
STABLE: Final = State.STABLE
DEAD: Final = State.DEAD


class Transition(NamedTuple):
    """What is done, and the states in which the group may be afterwards."""

    action: Callable[[Standing, Any, int], None]
    """Of the standing, the event and the time."""
    leads_to: frozenset[State]


def _to(action: Callable[[Standing, Any, int], None], *states: State) -> Transition:
    return Transition(action, frozenset(states))


def _knows_nobody(_standing: Standing, _event: Event, _now_ms: int) -> NoReturn:
    raise UnknownMemberError("the group has no members")


def _is_gone(_standing: Standing, _event: Event, _now_ms: int) -> NoReturn:
    raise CoordinatorUnavailableError("the group is not looked after here any more")


def _rests(_standing: Standing, _event: Event, _now_ms: int) -> None:
    """Nothing is ever due in a group that is gone."""


TRANSITIONS: Final[Mapping[tuple[State, Step], Transition]] = {
    # Nobody is here: the first member waits a little for others, and only Join means anything.
    (EMPTY, Step.NEWCOMER): _to(join.come, EMPTY, PREPARING),
    (EMPTY, Step.REJOIN): _to(_knows_nobody, EMPTY),
    (EMPTY, Step.RETURN): _to(_knows_nobody, EMPTY),
    (EMPTY, Step.SYNC): _to(_knows_nobody, EMPTY),
    (EMPTY, Step.HEARTBEAT): _to(_knows_nobody, EMPTY),
    (EMPTY, Step.LEAVE): _to(leave.leave, EMPTY),
    (EMPTY, Step.TICK): _to(leave.tick_empty, EMPTY),
    # Members are called together: who joins waits, and the last to come or to go ends the wait.
    (PREPARING, Step.NEWCOMER): _to(join.come_preparing, PREPARING, COMPLETING),
    (PREPARING, Step.REJOIN): _to(join.rejoin_preparing, PREPARING, COMPLETING),
    (PREPARING, Step.RETURN): _to(join.return_preparing, PREPARING, COMPLETING),
    (PREPARING, Step.SYNC): _to(sync.sync_preparing, PREPARING),
    (PREPARING, Step.HEARTBEAT): _to(heartbeat.beat_preparing, PREPARING),
    (PREPARING, Step.LEAVE): _to(leave.leave, PREPARING, COMPLETING, EMPTY),
    (PREPARING, Step.TICK): _to(leave.tick_preparing, PREPARING, COMPLETING, EMPTY),
    # A generation has begun, and waits for its leader; whoever comes, goes or changes ends it.
    (COMPLETING, Step.NEWCOMER): _to(join.come, COMPLETING, PREPARING),
    (COMPLETING, Step.REJOIN): _to(join.rejoin_completing, COMPLETING, PREPARING),
    (COMPLETING, Step.RETURN): _to(join.return_completing, COMPLETING, PREPARING),
    (COMPLETING, Step.SYNC): _to(sync.sync_completing, COMPLETING, STABLE),
    (COMPLETING, Step.HEARTBEAT): _to(heartbeat.beat, COMPLETING),
    (COMPLETING, Step.LEAVE): _to(leave.leave, COMPLETING, PREPARING, EMPTY),
    (COMPLETING, Step.TICK): _to(leave.tick_generation, COMPLETING, PREPARING, EMPTY),
    # Everybody owns something, and keeps it until somebody comes, goes or changes.
    (STABLE, Step.NEWCOMER): _to(join.come, STABLE, PREPARING),
    (STABLE, Step.REJOIN): _to(join.rejoin_stable, STABLE, PREPARING, COMPLETING),
    (STABLE, Step.RETURN): _to(join.return_stable, STABLE, PREPARING, COMPLETING),
    (STABLE, Step.SYNC): _to(sync.sync_stable, STABLE),
    (STABLE, Step.HEARTBEAT): _to(heartbeat.beat, STABLE),
    (STABLE, Step.LEAVE): _to(leave.leave, STABLE, PREPARING, EMPTY),
    (STABLE, Step.TICK): _to(leave.tick_generation, STABLE, PREPARING, EMPTY),
    # The group is somebody else's: let the members look for its coordinator.
    (DEAD, Step.NEWCOMER): _to(_is_gone, DEAD),
    (DEAD, Step.REJOIN): _to(_is_gone, DEAD),
    (DEAD, Step.RETURN): _to(_is_gone, DEAD),
    (DEAD, Step.SYNC): _to(_is_gone, DEAD),
    (DEAD, Step.HEARTBEAT): _to(_is_gone, DEAD),
    (DEAD, Step.LEAVE): _to(_is_gone, DEAD),
    (DEAD, Step.TICK): _to(_rests, DEAD),
}
