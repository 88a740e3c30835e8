"""Traces of a broker process, as an OTLP collector receives them."""

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
def traced_broker(collector, start_broker):
    return start_broker(tracing_endpoint=collector.url, tracing_sample_ratio="1")


def produce(address, count=1, **settings):
    producer = Producer({"bootstrap.servers": address, "client.id": "till", **settings})
    for number in range(count):
        producer.produce("orders", b"secret value", key=b"secret key %d" % number)
    assert producer.flush(30) == 0


def test_wal_upload_is_a_child_of_the_produce_span(traced_broker, collector):
    produce(traced_broker.address)
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


def test_pending_spans_are_exported_at_shutdown(traced_broker, collector):
    produce(traced_broker.address)
    traced_broker.terminate()
    assert collector.named("Produce")


def test_control_plane_propagates_the_trace(traced_broker, collector):
    """The spans of the caller, in this process, and of the broker belong to one trace."""

    async def call():
        async with ControlClient(traced_broker.control_address) as client:
            await client.status()

    def spans_of(service):
        return [span for span in collector.named("control GetStatus") if span.service == service]

    tracing.start(Tracing(endpoint=collector.url, sample_ratio=1.0), "caller")
    try:
        asyncio.run(call())
    finally:
        tracing.stop()
    wait_until(lambda: spans_of("kafscale-broker") and spans_of("caller"), "both spans of a call")
    (client_span,), (server_span,) = spans_of("caller"), spans_of("kafscale-broker")
    assert (client_span.kind, server_span.kind) == ("client", "server")
    assert (server_span.trace_id, server_span.parent_id) == (
        client_span.trace_id,
        client_span.span_id,
    )


def test_sample_ratio_of_zero_starts_no_trace(collector, start_broker):
    broker = start_broker(tracing_endpoint=collector.url, tracing_sample_ratio="0")
    produce(broker.address, 10)
    broker.terminate()
    assert collector.spans == []


def test_missing_collector_does_not_block_the_broker(start_broker):
    broker = start_broker(tracing_endpoint="http://127.0.0.1:9", tracing_sample_ratio="1")
    produce(broker.address, 10)
    broker.terminate()  # This fails if it takes too long.
