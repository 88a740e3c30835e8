"""GetTelemetrySubscriptions: v0.

Behaviour:
* The metrics that the subscriptions (`configs.client_metrics`) request of this client, and how
  often it may push them; none without a subscription that matches it.
* A client without an instance id gets one.
* A client that asks again before its push interval is THROTTLING_QUOTA_EXCEEDED.
* Requires no permission, as in Kafka.

Version notes: there is one version.
"""

import uuid

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.telemetry import clients
from kafscale.errors import KafscaleError
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    instance_id = request.client_instance_id
    instance = context.broker.telemetry.instance(
        context, uuid.uuid4().bytes if instance_id == UUID_ZERO else instance_id
    )
    try:
        instance.ask(context.received_ms)
    except KafscaleError as error:
        instance.error = error.code
        raise
    instance.error = 0
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(clients.ACCEPTED_CODECS),
        push_interval_ms=instance.interval_ms,
        telemetry_bytes_max=clients.TELEMETRY_BYTES_MAX,
        delta_temporality=True,
        requested_metrics=list(instance.metrics),
    )
