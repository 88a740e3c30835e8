"""PushTelemetry (72): a client sends the metrics that the broker requested (KIP-714).

Version notes:
* v0: flexible from the beginning.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Bytes,
    Int8,
    Int16,
    Int32,
    Message,
    Uuid,
)


class PushTelemetryRequest(Message):
    client_instance_id: Uuid = UUID_ZERO
    subscription_id: Int32 = 0
    terminating: Boolean = False
    """True in the last push of a client that closes."""
    compression_type: Int8 = 0
    metrics: Bytes = b""
    """MetricsData of OpenTelemetry's protobuf format, compressed as `compression_type` says."""


class PushTelemetryResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0


PUSH_TELEMETRY = Api(
    72, "PushTelemetry", PushTelemetryRequest, PushTelemetryResponse, 0, flexible_since=0
)
