"""Reads pushed metrics: OpenTelemetry's MetricsData in protobuf, compressed (KIP-714).

Invariants: neither the received nor the decompressed bytes exceed `TELEMETRY_BYTES_MAX`, and at
most `ELEMENTS_MAX` data points are read, so that hostile bytes cost a bounded time, in a thread.
What cannot be used is skipped: other kinds of metrics, totals (only what was added can be summed
over clients), values that are not finite or negative, by which clients say that they have none yet.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from kafscale.broker._generated import metrics_pb2 as messages
from kafscale.broker.telemetry.clients import TELEMETRY_BYTES_MAX
from kafscale.errors import (
    BatchTooLargeError,
    InvalidRecordError,
    RecordsError,
    TelemetryTooLargeError,
)
from kafscale.records.checksum import Buffer
from kafscale.records.compression import Codec, decompress

ELEMENTS_MAX: Final = 10_000
"""How many resources, scopes, metrics and points are read."""
NAME_LENGTH_MAX: Final = 200

_DELTA: Final = 1


class Point(NamedTuple):
    """One value of a metric."""

    metric: str
    value: float
    is_added: bool
    """True: what was added since the last push. False: a present value."""


def read(codec: int, data: Buffer) -> list[Point]:
    """The usable points of a push; raises for bytes that cannot be decoded."""
    try:
        parsed = messages.MetricsData.FromString(
            decompress(Codec(codec), data, size_bytes_max=TELEMETRY_BYTES_MAX)
        )
    except BatchTooLargeError as error:
        raise TelemetryTooLargeError("The decompressed metrics are too large") from error
    except (RecordsError, DecodeError) as error:
        raise InvalidRecordError("The metrics cannot be decoded") from error
    return [point for point in _points(parsed) if point is not None and _is_usable(point)]


def _points(parsed: messages.MetricsData) -> Iterator[Point | None]:
    """All points; None for one without a value, which takes time as well."""
    resources = islice(parsed.resource_metrics, ELEMENTS_MAX)
    scopes = islice(chain.from_iterable(each.scope_metrics for each in resources), ELEMENTS_MAX)
    metrics = islice(chain.from_iterable(each.metrics for each in scopes), ELEMENTS_MAX)
    return islice(chain.from_iterable(map(_values, metrics)), ELEMENTS_MAX)


def _values(metric: messages.Metric) -> Iterable[Point | None]:
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        return (_point(metric.name, each, is_added=False) for each in metric.gauge.data_points)
    numbers = metric.sum
    if kind == "sum" and numbers.is_monotonic and numbers.aggregation_temporality == _DELTA:
        return (_point(metric.name, each, is_added=True) for each in numbers.data_points)
    return ()


def _point(metric: str, point: messages.NumberDataPoint, *, is_added: bool) -> Point | None:
    match point.WhichOneof("value"):
        case "as_double":
            return Point(metric, point.as_double, is_added)
        case "as_int":
            return Point(metric, float(point.as_int), is_added)
    return None


def _is_usable(point: Point) -> bool:
    return (
        math.isfinite(point.value)
        and point.value >= 0
        and 0 < len(point.metric) <= NAME_LENGTH_MAX
        and point.metric.isprintable()
    )
