"""Scraping, parsing and quantiles of broker metrics."""

import asyncio
import socket
import threading
from contextlib import suppress
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.cluster.metrics import (
    OTHER,
    Exposition,
    PartitionLag,
    ScrapeError,
    parse,
    quantile,
    scrape,
)
from kafscale.net.address import Address
from kafscale.observability.metrics import metric
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.counters import CompactionStatus

names = st.text(max_size=20)


def scrape_response(response, seconds_max=5.0):
    """Scrape a server that sends this response to any request and closes the connection.

    Without a response, the server waits until the client closes the connection.
    """

    def serve():
        client, _ = server.accept()
        with client, suppress(ConnectionError):
            client.recv(8192)
            if response:
                client.sendall(response)
            else:
                client.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return asyncio.run(scrape(Address(*server.getsockname()), seconds_max))
        finally:
            thread.join()


def test_scrape_reads_content_length_bytes():
    assert (
        scrape_response(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nx 1\n, and more") == "x 1\n"
    )


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", "Content-Length is missing"),
        (b"HTTP/1.1 200 OK\r\n\r\nx 1\n", "Content-Length is missing"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx 1\n", "cannot scrape"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "cannot scrape"),
        (b"x" * 100_000, "cannot scrape"),
    ],
)
def test_scrape_reports_invalid_responses(response, why):
    with pytest.raises(ScrapeError, match=why):
        scrape_response(response)


def test_scrape_times_out():
    with pytest.raises(ScrapeError, match=r"after 0\.1 s"):
        scrape_response(b"", seconds_max=0.1)


def test_scrape_reports_refused_connections():
    with pytest.raises(ScrapeError, match="cannot scrape"):
        asyncio.run(scrape(Address("127.0.0.1", 1), 5.0))


@given(st.dictionaries(st.tuples(names, names), st.integers(0, 2**53), max_size=20))
def test_exposition_reads_back_arbitrary_label_values(series):
    text = metric.render("x", "gauge", "Why.", ("group", "topic"), list(series.items()))
    exposition = Exposition(text + "# HELP y Why.\n# TYPE y gauge\ny 1\n")
    assert dict(exposition.samples("x", "group", "topic")) == series
    assert exposition.value("y") == 1


def test_exposition_finds_labels_by_name_and_skips_series_without_them():
    exposition = Exposition('# TYPE x counter\nx{a="1",b="2"} 5\nx{b="3"} 6\nx{a="4"} many\n')
    assert list(exposition.samples("x", "b")) == [(("2",), 5.0), (("3",), 6.0)]
    assert list(exposition.samples("x", "b", "a")) == [(("2", "1"), 5.0)]
    assert list(exposition.samples("x", "a")) == [(("1",), 5.0)]


@pytest.mark.parametrize("text", ["", "<html>", "# TYPE x gauge", "# TYPE x_y gauge\nx_y 1\n"])
def test_exposition_without_the_metric_has_no_value(text):
    exposition = Exposition(text)
    assert exposition.value("x") is None
    assert list(exposition.samples("x", "a")) == []


def test_parse_returns_what_a_broker_counted():
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
    metrics.compaction = lambda: CompactionStatus(dirty_ratios={"orders": 0.25})

    parsed = parse(Exposition(metrics.exposition().decode()))
    assert (parsed.connections, parsed.error_rate) == (7, 0.5)
    assert (parsed.produce_requests, parsed.fetch_requests) == (2, 1)
    assert parsed.produce_bytes == {("orders", 1): 100}
    assert parsed.fetch_bytes == {("orders", 1): 50}
    assert parsed.stored_bytes == {("orders", 1): 400}
    assert parsed.dirty_ratios == {"orders": 0.25}
    assert parsed.lags == (PartitionLag("billing", "orders", 1, 9),)
    put = parsed.operations["put"]
    assert (put.succeeded, put.failed, put.total) == (1, 1, 2)
    assert put.buckets[0] == (0.01, 0)
    assert put.buckets[1] == (0.025, 1)
    assert put.buckets[-1] == (float("inf"), 2)


def test_parse_sums_partitions_that_are_exposed_together():
    text = metric.render(
        "kafscale_produce_bytes_total",
        "counter",
        "Why.",
        ("topic", "partition"),
        [(("orders", "0"), 1), (("other", "other"), 5)],
    )
    assert parse(Exposition(text)).produce_bytes == {("orders", 0): 1, OTHER: 5}


@pytest.mark.parametrize("buckets", [(), ((1.0, 0), (inf, 0))])
def test_quantile_of_empty_buckets_is_none(buckets):
    assert quantile(0.99, buckets) is None


def test_quantile_above_all_bounds_is_the_last_finite_bound():
    assert quantile(0.99, ((0.1, 0), (5.0, 1), (inf, 100))) == 5.0


def test_quantile_skips_empty_buckets():
    assert quantile(0.5, ((1.0, 0), (2.0, 0), (4.0, 2), (inf, 2))) == 3.0


def test_quantile_is_monotonic():
    buckets = ((0.01, 3), (0.05, 3), (0.1, 40), (1.0, 90), (inf, 95))
    parsed = [quantile(share / 100, buckets) for share in range(1, 101)]
    assert parsed == sorted(parsed)
