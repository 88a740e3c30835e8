"""Whatever happens to a system that keeps its promises, the checker is content; spoil one thing
and it is not."""

import io
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaos.anomalies import Name
from chaos.checker import check
from chaos.history import Journal, decode_events
from unit.chaos.mutations import MUTATIONS
from unit.chaos.simulated_cluster import SimulatedCluster

clusters = st.tuples(st.integers(0, 2**32), st.integers(0, 300))


@given(clusters)
def test_a_good_history_is_not_complained_about(cluster):
    seed, steps = cluster
    assert check(SimulatedCluster(random.Random(seed)).run(steps)) == []


@given(clusters)
def test_only_the_order_of_each_process_counts(cluster):
    seed, steps = cluster
    events = SimulatedCluster(random.Random(seed)).run(steps)
    assert check(sorted(events, key=lambda event: event.process)) == []


@pytest.mark.parametrize("name", Name)
@given(seed=st.integers(0, 2**32))
def test_one_thing_that_is_wrong_is_found(name, seed):
    rng = random.Random(seed)
    spoilt = MUTATIONS[name](SimulatedCluster(rng).run(150), rng)
    assume(spoilt is not None)
    assert name in {anomaly.name for anomaly in check(spoilt)}


@given(clusters)
def test_a_history_is_read_as_it_was_written(cluster):
    seed, steps = cluster
    events = SimulatedCluster(random.Random(seed)).run(steps)
    file = io.BytesIO()
    journal = Journal(file, "all")
    for event in events:
        journal.write(event)
    file.seek(0)
    assert list(decode_events(file)) == events
