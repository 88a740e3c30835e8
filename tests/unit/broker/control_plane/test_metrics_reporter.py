"""Samples on their way to the operator: what is in them, and that its absence disturbs nobody."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from kafscale.broker.control_plane import metrics_reporter
from kafscale.broker.control_plane.metrics_reporter import Reporter, sample
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.counters import ClusterStatus
from kafscale.testing import virtual_time

AWAY = UnreachableError("operator:9094", "UNAVAILABLE", "connection refused")


def test_a_sample_has_totals_under_the_names_of_the_metrics():
    metrics = Metrics(lambda: 100.0)
    metrics.connections.active = 4
    metrics.cluster = lambda: ClusterStatus(3, True, True, 12, 17)
    metrics.log.unflushed_bytes = 9
    metrics.requests("Produce", 9).answered(0.1)
    metrics.requests("Fetch", 12).refused("NOT_LEADER", 0.1)
    metrics.partition("orders", 0).produce_bytes = 5
    metrics.partition("orders", 1).produce_bytes = 6
    taken = sample(metrics, "red", 3, 77)
    assert (taken.cluster_id, taken.broker_id, taken.timestamp_ms) == ("red", "3", 77)
    gauges = ("active_connections", "owned_partitions", "unflushed_bytes", "idle_seconds")
    assert [taken.gauges[f"kafscale_{name}"] for name in gauges] == [4, 12, 9, 0]
    counters = ("requests_total", "produce_bytes_total", "fetch_bytes_total")
    assert [taken.counters[f"kafscale_{name}"] for name in counters] == [2, 11, 0]
    assert set(taken.gauges) | set(taken.counters) == metrics_reporter.SENT


class Operator:
    """Takes samples; `failure` is raised instead, and one that `hangs` says nothing."""

    def __init__(self):
        self.failure = None
        self.hangs = False
        self.streams = []
        self.tries = 0
        self.connections = 0

    @asynccontextmanager
    async def connect(self):
        self.connections += 1
        yield self.take

    async def take(self, samples):
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        stream = []
        self.streams.append(stream)
        async for each in samples:
            stream.append(each.timestamp_ms)  # noqa: PERF401 - it is looked at meanwhile.
        if self.hangs:
            await asyncio.sleep(3600)
        return Ack()


def play(body):
    async def scenario(random):
        operator = Operator()
        began_ms = virtual_time.clock_ms()

        def measure():
            return MetricsSample(timestamp_ms=virtual_time.clock_ms() - began_ms)

        running = asyncio.ensure_future(Reporter(operator.connect, measure, random).run())
        with capture_logs() as events:
            await body(operator)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return [event["event"] for event in events]

    return virtual_time.run(scenario, seed=7)


def test_samples_come_every_few_seconds_in_streams_that_end():
    async def body(operator):
        await asyncio.sleep(200)
        times = [time for stream in operator.streams for time in stream]
        assert times == list(range(0, 200_000, 5_000))
        assert [len(stream) for stream in operator.streams] == [1, 12, 12, 12, 3]
        assert operator.connections == 1, "who takes samples is stayed with"

    assert play(body) == ["operator takes samples"]


def test_an_operator_that_is_away_is_tried_for_ever_and_told_of_once():
    async def body(operator):
        operator.failure = AWAY
        await asyncio.sleep(3600)
        least = 3600 / metrics_reporter.PAUSE_SECONDS_MAX
        assert least <= operator.tries == operator.connections <= 2 * least + 5
        operator.failure = None
        await asyncio.sleep(metrics_reporter.PAUSE_SECONDS_MAX + 1)
        assert len(operator.streams[0]) == 1

    assert play(body) == ["operator does not take samples", "operator takes samples"]


def test_it_is_tried_again_soon_at_first():
    async def body(operator):
        operator.failure = AWAY
        await asyncio.sleep(5)
        assert operator.tries in {3, 4}

    play(body)


@pytest.mark.parametrize("failure", [ValueError("a fault of ours"), OSError("no route")])
def test_no_error_ends_the_reports(failure):
    async def body(operator):
        await asyncio.sleep(10)
        operator.failure = failure
        await asyncio.sleep(200)
        operator.failure = None
        await asyncio.sleep(60)

    assert play(body) == [
        "operator takes samples",
        "operator does not take samples",
        "operator takes samples",
    ]


def test_an_operator_that_falls_silent_is_found_out():
    async def body(operator):
        operator.hangs = True
        await asyncio.sleep(60)
        assert operator.tries >= 3

    assert play(body) == ["operator does not take samples"]
