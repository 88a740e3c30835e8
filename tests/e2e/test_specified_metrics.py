"""A live broker exports every specified metric with its labels and buckets, and every log event."""

import json

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families

from services.waiting import wait_until

COUNT = 50

COUNTERS_AND_GAUGES = {
    "kafscale_produce_requests_total": {"topic", "partition", "status"},
    "kafscale_fetch_requests_total": {"topic", "partition", "status"},
    "kafscale_s3_operations_total": {"operation", "status"},
    "kafscale_cache_hit_rate": {"topic", "partition"},
    "kafscale_cache_size_bytes": set(),
    "kafscale_buffer_size_bytes": {"topic", "partition"},
    "kafscale_active_connections": set(),
    "kafscale_consumer_lag": {"group", "topic", "partition"},
    "kafscale_produce_requests_per_second": set(),
    "kafscale_consumer_rebalances_total": {"group"},
    "kafscale_s3_health_state": {"state"},
    "kafscale_s3_error_rate": set(),
    "kafscale_produce_rps": set(),
    "kafscale_fetch_rps": set(),
    "kafscale_admin_requests_total": {"api"},
    "kafscale_authz_denied_total": set(),
    "kafscale_broker_uptime_seconds": set(),
}
REQUEST_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
S3_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
HISTOGRAMS = {
    "kafscale_produce_latency_seconds": ({"topic", "acks"}, REQUEST_BUCKETS),
    "kafscale_fetch_latency_seconds": ({"topic", "cache_hit"}, REQUEST_BUCKETS),
    "kafscale_s3_latency_seconds": ({"operation"}, S3_BUCKETS),
}
EVENTS = {
    "produce_received": {"topic": "orders", "partition": 0, "batch_size": int},
    "segment_flushed": {
        "topic": "orders",
        "partition": 0,
        "base_offset": 0,
        "size_bytes": int,
        "duration": float,
    },
    "consumer_rebalance": {"group_id": "billing", "generation": int, "member_count": int},
}


@pytest.fixture
def used_broker(start_broker):
    """A broker with debug logs, a topic, and a group that has read half of it."""
    running = start_broker(
        log_level="debug", segment_bytes="1024", group_initial_rebalance_delay_ms="0"
    )
    producer = Producer({"bootstrap.servers": running.address, "linger.ms": 0})
    for number in range(COUNT):
        producer.produce("orders", b"x" * 100, key=str(number))
        producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": running.address,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "queued.min.messages": 1,
        }
    )
    consumer.subscribe(["orders"])
    left = COUNT // 2
    while left:
        left -= len(consumer.consume(left, 10))
    consumer.commit(asynchronous=False)
    yield running
    consumer.close()


def series(broker):
    _, text = broker.http("/metrics")
    return {
        sample.name: sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }, text


@pytest.mark.timeout(60)
def test_specified_metrics_are_exported_with_labels_and_buckets(used_broker):
    wait_until(
        lambda: "kafscale_consumer_lag{" in used_broker.http("/metrics")[1], "the lag of a group"
    )
    samples, text = series(used_broker)
    for name, labels in COUNTERS_AND_GAUGES.items():
        assert set(samples[name].labels) == labels, name
    for name, (labels, bounds) in HISTOGRAMS.items():
        assert set(samples[f"{name}_bucket"].labels) == labels | {"le"}, name
        buckets = {
            float(sample.labels["le"])
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"{name}_bucket"
        }
        assert buckets == {*bounds, float("inf")}, name
    assert (
        f'kafscale_consumer_lag{{group="billing",topic="orders",partition="0"}} {COUNT // 2}'
        in text
    )


@pytest.mark.timeout(60)
def test_specified_events_are_logged_with_their_fields(used_broker):
    def logged_events(name):
        lines = (
            json.loads(line) for line in used_broker.logged().splitlines() if line.startswith("{")
        )
        return [event for event in lines if event["event"] == name]

    for name, fields in EVENTS.items():
        wait_until(lambda name=name: logged_events(name), f"an event {name}")
        event = logged_events(name)[0]
        for field, value in fields.items():
            if isinstance(value, type):
                assert isinstance(event[field], value), (name, field)
            else:
                assert event[field] == value, (name, field)
