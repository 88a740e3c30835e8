"""GetTelemetrySubscriptions (71): the metrics that a client should push, and how often (KIP-714).

Version notes:
* v0: flexible from the beginning.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
)


class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = UUID_ZERO
    """Zero in a client's first request: the broker chooses one."""


class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = UUID_ZERO
    """The id that the broker chose; zero if the client sent one."""
    subscription_id: Int32 = 0
    accepted_compression_types: list[Int8] = []
    """Codecs as in record batches, the preferred one first: 0 none, 1 gzip, 2 snappy, 3 lz4,
    4 zstd."""
    push_interval_ms: Int32 = 0
    telemetry_bytes_max: Int32 = 0
    delta_temporality: Boolean = False
    """True: counters are sent as what was added since the last push, not as totals."""
    requested_metrics: list[String] = []
    """Prefixes of names; empty: no metrics at all; one empty string or `*`: every metric."""


GET_TELEMETRY_SUBSCRIPTIONS = Api(
    71,
    "GetTelemetrySubscriptions",
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    0,
    flexible_since=0,
)
