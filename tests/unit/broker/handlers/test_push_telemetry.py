"""Pushed metrics reach the broker's own, if they were requested.

Errors are compared with Kafka's in tests/conformance/administration/test_telemetry.py.
"""

import pytest

from kafscale.broker._generated import metrics_pb2 as messages
from kafscale.broker.telemetry.subscriptions import entity
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.get_telemetry_subscriptions import (
    GET_TELEMETRY_SUBSCRIPTIONS,
    GetTelemetrySubscriptionsRequest,
)
from kafscale.protocol.messages.push_telemetry import PUSH_TELEMETRY, PushTelemetryRequest
from kafscale.records.compression import Codec, compress
from unit.broker.in_memory_broker import run_with_broker
from unit.observability.scraping import values

SOFTWARE = "test-client"


async def subscribed(broker, metrics, match=""):
    """Subscribe to metrics, and ask for the subscription as a client."""
    configs = {"metrics": metrics, "match": match}
    await broker.services.config_store.alter(entity("any"), lambda _: configs)
    await broker.ask(API_VERSIONS, ApiVersionsRequest(SOFTWARE, "1.0"), 4)
    return await broker.ask(GET_TELEMETRY_SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest())


async def push(broker, subscription, data):
    request = PushTelemetryRequest(
        subscription.client_instance_id,
        subscription.subscription_id,
        compression_type=Codec.ZSTD,
        metrics=compress(Codec.ZSTD, data),
    )
    return (await broker.ask(PUSH_TELEMETRY, request)).error_code


def gauges(**values):
    metrics = [
        messages.Metric(
            name=name, gauge=messages.Gauge(data_points=[messages.NumberDataPoint(as_double=value)])
        )
        for name, value in values.items()
    ]
    scope = messages.ScopeMetrics(metrics=metrics)
    resource = messages.ResourceMetrics(scope_metrics=[scope])
    return messages.MetricsData(resource_metrics=[resource]).SerializeToString()


@pytest.mark.parametrize(
    ("requested", "counted"),
    [("*", {"latency", "lag"}), ("la,x", {"latency", "lag"}), ("lag", {"lag"})],
)
def test_requested_metrics_are_counted(requested, counted):
    async def body(broker):
        subscription = await subscribed(broker, requested)
        assert await push(broker, subscription, gauges(latency=0.5, lag=2.0)) == ErrorCode.NONE
        metrics = broker.services.metrics
        assert set(values(metrics, "kafscale_client_gauge_sum_total")) == {
            (SOFTWARE, each) for each in counted
        }
        assert values(metrics, "kafscale_client_pushes_total") == {(SOFTWARE,): 1}
        assert values(metrics, "kafscale_client_instances") == {(): 1}

    run_with_broker(body)


def test_client_that_does_not_match_is_asked_for_nothing():
    async def body(broker):
        subscription = await subscribed(broker, "*", "client_software_name=other")
        assert subscription.requested_metrics == []
        assert await push(broker, subscription, gauges(lag=2.0)) == ErrorCode.NONE
        assert not values(broker.services.metrics, "kafscale_client_gauge_sum_total")

    run_with_broker(body)


def test_undecodable_metrics_are_refused():
    async def body(broker):
        subscription = await subscribed(broker, "*")
        assert await push(broker, subscription, b"\xff\xff") == ErrorCode.INVALID_RECORD

    run_with_broker(body)
