"""What brokers tell at /metrics, read back; the writer is the judge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.cluster.exposition_reading import Exposition
from kafscale.admin.cluster.figures import OTHER, Lag, figures
from kafscale.observability.metrics import text_format
from kafscale.observability.metrics.broker import Metrics

names = st.text(max_size=20)


@given(st.dictionaries(st.tuples(names, names), st.integers(0, 2**53), max_size=20))
def test_whatever_names_clients_make_up_are_read_as_they_are(series):
    text = text_format.render("x", "gauge", "Why.", ("group", "topic"), list(series.items()))
    told = Exposition(text + "# HELP y Why.\n# TYPE y gauge\ny 1\n")
    assert dict(told.samples("x", "group", "topic")) == series
    assert told.value("y") == 1


def test_labels_are_found_by_name_and_what_lacks_one_is_left_out():
    told = Exposition('# TYPE x counter\nx{a="1",b="2"} 5\nx{b="3"} 6\nx{a="4"} many\n')
    assert list(told.samples("x", "b")) == [(("2",), 5.0), (("3",), 6.0)]
    assert list(told.samples("x", "b", "a")) == [(("2", "1"), 5.0)]
    assert list(told.samples("x", "a")) == [(("1",), 5.0)]


@pytest.mark.parametrize("text", ["", "<html>", "# TYPE x gauge", "# TYPE x_y gauge\nx_y 1\n"])
def test_what_is_not_told_is_not_there(text):
    told = Exposition(text)
    assert told.value("x") is None
    assert list(told.samples("x", "a")) == []


def test_what_a_broker_counts_comes_out_as_it_went_in():
    metrics = Metrics(lambda: 0.0)
    metrics.connections.active = 7
    metrics.partition("orders", 1).produce_bytes = 100
    metrics.partition("orders", 1).fetch_bytes = 50
    metrics.requests("Produce", 9).answered(0.01)
    metrics.requests("Produce", 8).refused("NOT_LEADER_OR_FOLLOWER", 0.01)
    metrics.requests("Fetch", 12).answered(0.01)
    metrics.operation("put").observe(0.02, succeeded=True)
    metrics.operation("put").observe(20.0, succeeded=False)
    metrics.store_health.error_rate = 0.5
    metrics.group_lags = lambda: [("billing", "orders", 1, 9)]
    metrics.stored_bytes = lambda: [("orders", 1, 400)]

    found = figures(Exposition(metrics.exposition().decode()))
    assert (found.connections, found.error_rate) == (7, 0.5)
    assert (found.produce_requests, found.fetch_requests) == (2, 1)
    assert found.produce_bytes == {("orders", 1): 100}
    assert found.fetch_bytes == {("orders", 1): 50}
    assert found.stored_bytes == {("orders", 1): 400}
    assert found.lags == (Lag("billing", "orders", 1, 9),)
    put = found.operations["put"]
    assert (put.succeeded, put.failed, put.total) == (1, 1, 2)
    assert put.buckets[0] == (0.01, 0)
    assert put.buckets[1] == (0.025, 1)
    assert put.buckets[-1] == (float("inf"), 2)


def test_what_is_told_together_is_nobodys_partition():
    text = text_format.render(
        "kafscale_produce_bytes_total",
        "counter",
        "Why.",
        ("topic", "partition"),
        [(("orders", "0"), 1), (("other", "other"), 5)],
    )
    assert figures(Exposition(text)).produce_bytes == {("orders", 0): 1, OTHER: 5}
