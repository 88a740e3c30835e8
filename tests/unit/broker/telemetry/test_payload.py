"""Pushed metrics are read as OpenTelemetry's own messages encode them, within limits."""

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

from kafscale.broker.telemetry import payload
from kafscale.broker.telemetry.clients import TELEMETRY_BYTES_MAX
from kafscale.broker.telemetry.payload import Point
from kafscale.errors import InvalidRecordError, TelemetryTooLargeError
from kafscale.records.compression import Codec, compress

NAME = "org.apache.kafka.producer.request.latency.avg"
NODE = KeyValue(key="node_id", value=AnyValue(string_value="7"))
DELTA, CUMULATIVE = 1, 2
TOO_MANY = 500_000
PACKAGE = Path("kafscale/broker/_generated")
ROOT = Path(__file__).parents[4]
SECONDS_MAX = 0.25


def in_scope(*metrics):
    scope = otlp.ScopeMetrics(metrics=metrics)
    resource = otlp.ResourceMetrics(scope_metrics=[scope])
    return otlp.MetricsData(resource_metrics=[resource])


def pushed(*metrics):
    return in_scope(*metrics).SerializeToString()


def gauge(*values, name=NAME):
    points = [otlp.NumberDataPoint(as_double=each, attributes=[NODE]) for each in values]
    return otlp.Metric(name=name, unit="ms", gauge=otlp.Gauge(data_points=points))


def total(value, *, temporality=DELTA, is_monotonic=True):
    points = [otlp.NumberDataPoint(as_int=value, start_time_unix_nano=1, time_unix_nano=2)]
    numbers = otlp.Sum(
        data_points=points, aggregation_temporality=temporality, is_monotonic=is_monotonic
    )
    return otlp.Metric(name="t", sum=numbers)


@pytest.mark.parametrize("codec", Codec)
def test_gauges_and_sums_are_read(codec):
    data = compress(codec, pushed(gauge(0.5, 7.0), total(3)))
    assert payload.read(codec, data) == [
        Point(NAME, 0.5, False),
        Point(NAME, 7.0, False),
        Point("t", 3.0, True),
    ]


@pytest.mark.parametrize(
    "unusable",
    [
        gauge(math.nan, math.inf, -1.0),
        gauge(1.0, name=""),
        gauge(1.0, name="x" * 201),
        gauge(1.0, name="a\nb"),
        total(3, temporality=CUMULATIVE),
        total(3, is_monotonic=False),
        otlp.Metric(name="h", histogram=otlp.Histogram(aggregation_temporality=DELTA)),
        otlp.Metric(name="nothing"),
    ],
)
def test_other_metrics_are_skipped(unusable):
    assert payload.read(Codec.NONE, pushed(unusable, gauge(2.0))) == [Point(NAME, 2.0, False)]


@pytest.mark.parametrize("codec", Codec)
def test_bytes_that_cannot_be_decoded_are_refused(codec):
    with pytest.raises(InvalidRecordError):
        payload.read(codec, b"\xff\xff\xff")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_decompressed_bytes_are_limited(codec):
    with pytest.raises(TelemetryTooLargeError):
        payload.read(codec, compress(codec, bytes(TELEMETRY_BYTES_MAX + 1)))


def test_points_are_limited():
    points = payload.read(Codec.NONE, pushed(gauge(*[1.0] * (payload.ELEMENTS_MAX + 1))))
    assert len(points) == payload.ELEMENTS_MAX


@pytest.mark.parametrize(
    "hostile",
    [
        otlp.MetricsData(resource_metrics=[otlp.ResourceMetrics()] * TOO_MANY),
        otlp.MetricsData(
            resource_metrics=[otlp.ResourceMetrics(scope_metrics=[otlp.ScopeMetrics()] * TOO_MANY)]
        ),
        in_scope(*[otlp.Metric()] * TOO_MANY),
        in_scope(otlp.Metric(gauge=otlp.Gauge(data_points=[otlp.NumberDataPoint()] * TOO_MANY))),
    ],
    ids=["resources", "scopes", "metrics", "points"],
)
def test_many_empty_elements_take_little_time(hostile):
    """An empty element has two bytes."""
    data = hostile.SerializeToString()
    assert len(data) < TELEMETRY_BYTES_MAX
    began = time.process_time()
    assert payload.read(Codec.NONE, data) == []
    assert time.process_time() - began < SECONDS_MAX


def test_generated_modules_match_the_schema(tmp_path):
    command = [
        sys.executable,
        *("-m", "grpc_tools.protoc", f"--proto_path={PACKAGE}=proto/telemetry"),
        *(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", "proto/telemetry/metrics.proto"),
    ]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - the command is this test's own.
    for module in ("metrics_pb2.py", "metrics_pb2.pyi"):
        written = (tmp_path / PACKAGE / module).read_text()
        assert written == (ROOT / "src" / PACKAGE / module).read_text()
