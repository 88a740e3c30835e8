"""Whatever happens to a system that keeps its promises, the checker is content; spoil one thing
and it is not."""

import io
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaos.anomalies import Name
from chaos.checker import check
from chaos.history import Journal, parsed
from unit.chaos.mutations import MUTATIONS
from unit.chaos.worlds import World

worlds = st.tuples(st.integers(0, 2**32), st.integers(0, 300))


@given(worlds)
def test_a_good_history_is_not_complained_about(world):
    seed, steps = world
    assert check(World(random.Random(seed)).run(steps)) == []


@given(worlds)
def test_only_the_order_of_each_process_counts(world):
    seed, steps = world
    events = World(random.Random(seed)).run(steps)
    assert check(sorted(events, key=lambda event: event.process)) == []


@pytest.mark.parametrize("name", Name)
@given(seed=st.integers(0, 2**32))
def test_one_thing_that_is_wrong_is_found(name, seed):
    chance = random.Random(seed)
    spoilt = MUTATIONS[name](World(chance).run(150), chance)
    assume(spoilt is not None)
    assert name in {anomaly.name for anomaly in check(spoilt)}


@given(worlds)
def test_a_history_is_read_as_it_was_written(world):
    seed, steps = world
    events = World(random.Random(seed)).run(steps)
    file = io.BytesIO()
    journal = Journal(file, "all")
    for event in events:
        journal.write(event)
    file.seek(0)
    assert list(parsed(file)) == events
