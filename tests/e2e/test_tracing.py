"""Traces of a real broker, as a collector gets them."""

import asyncio

import pytest
from confluent_kafka import Producer

from kafscale.config.sections.observability import Tracing
from kafscale.control_plane.client import ControlClient
from kafscale.observability import tracing
from services.waiting import wait_until

pytest.importorskip("opentelemetry.sdk")

from services import otlp_collector

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def collector():
    with otlp_collector.running() as running:
        yield running


@pytest.fixture
def traced(collector, start_broker):
    return start_broker(tracing_endpoint=collector.url, tracing_sample_ratio="1")


def produce(address, count=1, **settings):
    producer = Producer({"bootstrap.servers": address, "client.id": "till", **settings})
    for number in range(count):
        producer.produce("orders", b"secret value", key=b"secret key %d" % number)
    assert producer.flush(30) == 0


def test_a_produce_leads_to_the_object_that_it_waited_for(traced, collector):
    produce(traced.address)
    request = collector.wait_for("Produce")
    assert (request.service, request.kind, request.parent_id) == ("kafscale-broker", "server", "")
    assert request.attributes["messaging.client.id"] == "till"
    assert request.attributes["messaging.system"] == "kafka"
    assert request.attributes["kafscale.api.version"] > 0
    assert request.error == ""
    wal = collector.wait_for("WAL object")
    assert (wal.trace_id, wal.parent_id) == (request.trace_id, request.span_id)
    key = wal.attributes["kafscale.object.key"]
    put = collector.wait_for("objects put", **{"kafscale.object.key": key})
    assert (put.kind, put.trace_id, put.parent_id) == ("client", wal.trace_id, wal.span_id)
    assert put.attributes["kafscale.object.bytes"] > len(b"secret value")
    assert "secret" not in repr(collector.spans)


def test_what_was_not_sent_yet_is_sent_at_the_end(traced, collector):
    produce(traced.address)
    traced.terminate()
    assert collector.named("Produce")


def test_the_control_plane_carries_the_trace_along(traced, collector):
    """A caller with tracing on, in this process, and the broker tell of one trace."""

    async def ask():
        async with ControlClient(f"127.0.0.1:{traced.metrics_port}") as client:
            await client.status()

    def of(service):
        return [span for span in collector.named("control GetStatus") if span.service == service]

    tracing.start(Tracing(endpoint=collector.url, sample_ratio=1.0), "caller")
    try:
        asyncio.run(ask())
    finally:
        tracing.stop()
    wait_until(lambda: of("kafscale-broker") and of("caller"), "both ends of a call")
    (asked,), (answered,) = of("caller"), of("kafscale-broker")
    assert (asked.kind, answered.kind) == ("client", "server")
    assert (answered.trace_id, answered.parent_id) == (asked.trace_id, asked.span_id)


def test_no_request_begins_a_trace_where_the_share_is_nothing(collector, start_broker):
    broker = start_broker(tracing_endpoint=collector.url, tracing_sample_ratio="0")
    produce(broker.address, 10)
    broker.terminate()
    assert collector.spans == []


def test_a_collector_that_is_not_there_stops_nobody(start_broker):
    broker = start_broker(tracing_endpoint="http://127.0.0.1:9", tracing_sample_ratio="1")
    produce(broker.address, 10)
    broker.terminate()  # Which fails where it takes long.
