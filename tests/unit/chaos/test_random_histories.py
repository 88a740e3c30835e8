"""The checker accepts random histories of a correct cluster, and reports every mutation."""

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

OF_COMPACTION = (Name.LOST_KEY, Name.DELETED_KEY)
OF_TRANSACTIONS = (Name.SPLIT, Name.EARLY, Name.UNSTABLE)
"""Anomalies of compacted topics and of transactions have tests of their own."""

clusters = st.tuples(st.integers(0, 2**32), st.integers(0, 300))


@given(clusters)
def test_correct_history_has_no_anomalies(cluster):
    seed, steps = cluster
    assert check(SimulatedCluster(random.Random(seed)).run(steps)) == []


@given(clusters)
def test_order_of_events_of_different_processes_is_irrelevant(cluster):
    seed, steps = cluster
    events = SimulatedCluster(random.Random(seed)).run(steps)
    assert check(sorted(events, key=lambda event: event.process)) == []


@pytest.mark.parametrize(
    "name", [name for name in Name if name not in OF_COMPACTION + OF_TRANSACTIONS]
)
@given(seed=st.integers(0, 2**32))
def test_mutation_is_reported_by_name(name, seed):
    rng = random.Random(seed)
    mutated = MUTATIONS[name](SimulatedCluster(rng).run(150), rng)
    assume(mutated is not None)
    assert name in {anomaly.name for anomaly in check(mutated)}


@given(clusters)
def test_history_is_decoded_as_it_was_written(cluster):
    seed, steps = cluster
    events = SimulatedCluster(random.Random(seed)).run(steps)
    file = io.BytesIO()
    journal = Journal(file, "all")
    for event in events:
        journal.write(event)
    file.seek(0)
    assert list(decode_events(file)) == events
