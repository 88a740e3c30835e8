"""The transition table is complete and consistent, and the scripts cover all of it."""

from itertools import product

import pytest

from kafscale.groups.classic import State
from kafscale.groups.classic.group_state import NEXT_STATES, Step
from kafscale.groups.classic.transitions import TRANSITIONS
from unit.groups.classic.scripts import SCRIPTS, ScriptRunner, replay, replay_script

NEVER = {(State.EMPTY, Step.STATIC_REJOIN), (State.DEAD, Step.STATIC_REJOIN)}
"""A group without members has no static member that could rejoin."""


def reachable(state: State) -> set[State]:
    """All states that can be reached by direct transitions."""
    result, edge = {state}, {state}
    while edge:
        edge = {follower for each in edge for follower in NEXT_STATES[each]} - result
        result |= edge
    return result


def test_table_has_every_step_in_every_state():
    assert set(TRANSITIONS) == set(product(State, Step))


@pytest.mark.parametrize(("state", "step"), TRANSITIONS, ids=str)
def test_transition_leads_to_reachable_states(state, step):
    leads_to = TRANSITIONS[state, step].leads_to
    assert leads_to
    assert leads_to <= reachable(state)


def test_only_join_leave_and_tick_end_a_stable_generation():
    ending = {step for step in Step if TRANSITIONS[State.STABLE, step].leads_to != {State.STABLE}}
    assert ending == {Step.NEW_MEMBER, Step.REJOIN, Step.STATIC_REJOIN, Step.LEAVE, Step.TICK}


def test_scripts_cover_all_transitions():
    covered = set()
    for path in SCRIPTS:
        runner = ScriptRunner()
        replay(path.read_text(), runner)
        covered |= runner.covered
    ways = {(*pair, end) for pair, row in TRANSITIONS.items() for end in row.leads_to}
    assert covered == {way for way in ways if way[:2] not in NEVER}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_output_is_unchanged(path):
    script = path.read_text()
    assert replay_script(script) == script


def test_scripts_exist():
    assert len(SCRIPTS) > 10
