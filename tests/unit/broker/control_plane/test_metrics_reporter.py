"""Metrics samples for the operator: their content, and operators that fail."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from doubles import virtual_time
from kafscale.broker.control_plane import metrics_reporter
from kafscale.broker.control_plane.metrics_reporter import Reporter, sample
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.counters import ClusterStatus

UNREACHABLE = UnreachableError("operator:9094", "UNAVAILABLE", "connection refused")


def test_sample_has_totals_by_metric_name():
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
    """Accepts samples; `failure` is raised instead, and a hanging one never responds."""

    def __init__(self):
        self.failure = None
        self.is_hanging = False
        self.streams = []
        self.tries = 0
        self.connections = 0

    @asynccontextmanager
    async def connect(self):
        self.connections += 1
        yield self.accept

    async def accept(self, samples):
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        stream = []
        self.streams.append(stream)
        async for each in samples:
            stream.append(each.timestamp_ms)  # noqa: PERF401 - it is read meanwhile.
        if self.is_hanging:
            await asyncio.sleep(3600)
        return Ack()


def simulate(body):
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


def test_samples_are_sent_in_bounded_streams():
    async def body(operator):
        await asyncio.sleep(200)
        times = [time for stream in operator.streams for time in stream]
        assert times == list(range(0, 200_000, 5_000))
        assert [len(stream) for stream in operator.streams] == [1, 12, 12, 12, 3]
        assert operator.connections == 1, "the connection is kept"

    assert simulate(body) == ["operator accepts samples"]


def test_unreachable_operator_is_retried_and_logged_once():
    async def body(operator):
        operator.failure = UNREACHABLE
        await asyncio.sleep(3600)
        least = 3600 / metrics_reporter.PAUSE_SECONDS_MAX
        assert least <= operator.tries == operator.connections <= 2 * least + 5
        operator.failure = None
        await asyncio.sleep(metrics_reporter.PAUSE_SECONDS_MAX + 1)
        assert len(operator.streams[0]) == 1

    assert simulate(body) == ["operator does not accept samples", "operator accepts samples"]


def test_first_retries_are_fast():
    async def body(operator):
        operator.failure = UNREACHABLE
        await asyncio.sleep(5)
        assert operator.tries in {3, 4}

    simulate(body)


@pytest.mark.parametrize("failure", [ValueError("a bug"), OSError("no route")])
def test_no_error_stops_the_reporter(failure):
    async def body(operator):
        await asyncio.sleep(10)
        operator.failure = failure
        await asyncio.sleep(200)
        operator.failure = None
        await asyncio.sleep(60)

    assert simulate(body) == [
        "operator accepts samples",
        "operator does not accept samples",
        "operator accepts samples",
    ]


def test_hanging_operator_is_detected():
    async def body(operator):
        operator.is_hanging = True
        await asyncio.sleep(60)
        assert operator.tries >= 3

    assert simulate(body) == ["operator does not accept samples"]
