"""The table of transitions: it is whole, fits the states, and the scripts walk all of it."""

from itertools import product

import pytest

from kafscale.groups.classic import State
from kafscale.groups.classic.state import FOLLOWERS
from kafscale.groups.classic.step import Step
from kafscale.groups.classic.transitions import TRANSITIONS
from unit.groups.classic.script import SCRIPTS, Stage, replayed

NEVER = {(State.EMPTY, Step.RETURN), (State.DEAD, Step.RETURN)}
"""A group without members has no static one that could return."""


def reachable(state: State) -> set[State]:
    """The states to which steps can lead one after the other."""
    found, edge = {state}, {state}
    while edge:
        edge = {follower for each in edge for follower in FOLLOWERS[each]} - found
        found |= edge
    return found


def test_every_step_has_its_place_in_every_state():
    assert set(TRANSITIONS) == set(product(State, Step))


@pytest.mark.parametrize(("state", "step"), TRANSITIONS, ids=str)
def test_a_transition_leads_where_states_may_lead(state, step):
    leads_to = TRANSITIONS[state, step].leads_to
    assert leads_to
    assert leads_to <= reachable(state)


def test_only_who_joins_or_leaves_or_lets_time_pass_ends_a_stable_generation():
    ending = {step for step in Step if TRANSITIONS[State.STABLE, step].leads_to != {State.STABLE}}
    assert ending == {Step.NEWCOMER, Step.REJOIN, Step.RETURN, Step.LEAVE, Step.TICK}


def test_the_scripts_walk_every_way_of_the_table():
    walked = set()
    for path in SCRIPTS:
        stage = Stage()
        replayed(path.read_text(), stage)
        walked |= stage.walked
    ways = {(*pair, end) for pair, row in TRANSITIONS.items() for end in row.leads_to}
    assert walked == {way for way in ways if way[:2] not in NEVER}
