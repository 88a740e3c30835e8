"""PushTelemetry: v0.

Behaviour:
* The metrics are added to those of the broker (`/metrics`), by client software and metric.
* They are decompressed and decoded in a thread; one push at a time.
* Metrics that were not requested are ignored.
* Errors are Kafka's: INVALID_REQUEST without an instance id and after the last push,
  THROTTLING_QUOTA_EXCEEDED before the push interval, unless it is the last push,
  UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, and INVALID_RECORD for
  bytes that cannot be decoded.
* Requires no permission, as in Kafka.

Version notes: there is one version.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.telemetry import clients
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


async def handle(context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    if request.client_instance_id in clients.RESERVED_IDS:
        raise InvalidRequestError("Invalid request from the client, invalid client instance id")
    telemetry = context.broker.telemetry
    instance = telemetry.instance(context, request.client_instance_id)
    try:
        instance.push(request, context.received_ms)
        if request.metrics:
            await telemetry.receive(context, request, instance.metrics)
    except KafscaleError as error:
        instance.error = error.code
        raise
    instance.error = 0
    return PushTelemetryResponse()
