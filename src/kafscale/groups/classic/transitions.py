"""The transition table: the action of each step in each state, and the possible final states.

A rejected step raises an error, which is its response, and leaves the group unchanged.
`NEXT_STATES` has the direct transitions; this table has the state after the whole event. So a group
with one member goes from Stable to CompletingRebalance at once when its leader rejoins, as no other
member has to be awaited, and to Empty when it leaves.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from kafscale.errors import CoordinatorUnavailableError, UnknownMemberError
from kafscale.groups.classic import generation, join, leave
from kafscale.groups.classic.group_state import GroupState, State, Step
from kafscale.groups.events import Event

EMPTY: Final = State.EMPTY
PREPARING: Final = State.PREPARING
COMPLETING: Final = State.COMPLETING
STABLE: Final = State.STABLE
DEAD: Final = State.DEAD


class Transition(NamedTuple):
    """The action, and the possible states after it."""

    action: Callable[[GroupState, Any, int], None]
    """Called with the group state, the event and the time."""
    leads_to: frozenset[State]


def _to(action: Callable[[GroupState, Any, int], None], *states: State) -> Transition:
    return Transition(action, frozenset(states))


def _unknown_member(_group: GroupState, _event: Event, _now_ms: int) -> NoReturn:
    raise UnknownMemberError("the group has no members")


def _group_is_dead(_group: GroupState, _event: Event, _now_ms: int) -> NoReturn:
    raise CoordinatorUnavailableError("this broker is no longer the group's coordinator")


def _ignore_tick(_group: GroupState, _event: Event, _now_ms: int) -> None:
    """Dead groups ignore ticks."""


TRANSITIONS: Final[Mapping[tuple[State, Step], Transition]] = {
    # No members: the first member waits for others, and only Join is accepted.
    (EMPTY, Step.NEW_MEMBER): _to(join.add_member, EMPTY, PREPARING),
    (EMPTY, Step.REJOIN): _to(_unknown_member, EMPTY),
    (EMPTY, Step.STATIC_REJOIN): _to(_unknown_member, EMPTY),
    (EMPTY, Step.SYNC): _to(_unknown_member, EMPTY),
    (EMPTY, Step.HEARTBEAT): _to(_unknown_member, EMPTY),
    (EMPTY, Step.LEAVE): _to(leave.leave, EMPTY),
    (EMPTY, Step.TICK): _to(leave.tick_empty, EMPTY),
    # Members join: the last one to join or to leave ends the wait.
    (PREPARING, Step.NEW_MEMBER): _to(join.add_member_preparing, PREPARING, COMPLETING),
    (PREPARING, Step.REJOIN): _to(join.member_rejoined_preparing, PREPARING, COMPLETING),
    (PREPARING, Step.STATIC_REJOIN): _to(
        join.static_member_rejoined_preparing, PREPARING, COMPLETING
    ),
    (PREPARING, Step.SYNC): _to(generation.sync_preparing, PREPARING),
    (PREPARING, Step.HEARTBEAT): _to(generation.heartbeat_preparing, PREPARING),
    (PREPARING, Step.LEAVE): _to(leave.leave, PREPARING, COMPLETING, EMPTY),
    (PREPARING, Step.TICK): _to(leave.tick_preparing, PREPARING, COMPLETING, EMPTY),
    # A generation waits for its leader; a member that joins, leaves or changes ends it.
    (COMPLETING, Step.NEW_MEMBER): _to(join.add_member, COMPLETING, PREPARING),
    (COMPLETING, Step.REJOIN): _to(join.member_rejoined_completing, COMPLETING, PREPARING),
    (COMPLETING, Step.STATIC_REJOIN): _to(
        join.static_member_rejoined_completing, COMPLETING, PREPARING
    ),
    (COMPLETING, Step.SYNC): _to(generation.sync_completing, COMPLETING, STABLE),
    (COMPLETING, Step.HEARTBEAT): _to(generation.heartbeat, COMPLETING),
    (COMPLETING, Step.LEAVE): _to(leave.leave, COMPLETING, PREPARING, EMPTY),
    (COMPLETING, Step.TICK): _to(leave.tick_generation, COMPLETING, PREPARING, EMPTY),
    # All members have assignments until one joins, leaves or changes.
    (STABLE, Step.NEW_MEMBER): _to(join.add_member, STABLE, PREPARING),
    (STABLE, Step.REJOIN): _to(join.member_rejoined_stable, STABLE, PREPARING, COMPLETING),
    (STABLE, Step.STATIC_REJOIN): _to(
        join.static_member_rejoined_stable, STABLE, PREPARING, COMPLETING
    ),
    (STABLE, Step.SYNC): _to(generation.sync_stable, STABLE),
    (STABLE, Step.HEARTBEAT): _to(generation.heartbeat, STABLE),
    (STABLE, Step.LEAVE): _to(leave.leave, STABLE, PREPARING, EMPTY),
    (STABLE, Step.TICK): _to(leave.tick_generation, STABLE, PREPARING, EMPTY),
    # Another broker is the coordinator: members have to find it.
    (DEAD, Step.NEW_MEMBER): _to(_group_is_dead, DEAD),
    (DEAD, Step.REJOIN): _to(_group_is_dead, DEAD),
    (DEAD, Step.STATIC_REJOIN): _to(_group_is_dead, DEAD),
    (DEAD, Step.SYNC): _to(_group_is_dead, DEAD),
    (DEAD, Step.HEARTBEAT): _to(_group_is_dead, DEAD),
    (DEAD, Step.LEAVE): _to(_group_is_dead, DEAD),
    (DEAD, Step.TICK): _to(_ignore_tick, DEAD),
}
