"""`TelemetryReceiver`: matches clients with subscriptions, and counts the metrics that they push.

Invariant: one push is decoded at a time, in a thread, so that pushes delay other requests little,
whatever their number.
"""

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.telemetry import payload
from kafscale.broker.telemetry.clients import ClientInstance, TelemetryClients
from kafscale.broker.telemetry.subscription import ALL_METRICS
from kafscale.broker.telemetry.subscriptions import Subscriptions
from kafscale.observability.metrics.client_metrics import ClientMetrics
from kafscale.protocol.messages.push_telemetry import PushTelemetryRequest

UNKNOWN: Final = "unknown"
"""The software of clients that do not name theirs."""

_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="telemetry")


class TelemetryReceiver:
    """The client metrics of one broker."""

    def __init__(self, subscriptions: Subscriptions, metrics: ClientMetrics) -> None:
        self._subscriptions = subscriptions
        self._metrics = metrics
        self._clients = TelemetryClients()
        metrics.instances = lambda: len(self._clients)

    def instance(self, context: RequestContext, instance_id: bytes) -> ClientInstance:
        """The instance of this id, with the subscriptions that match the client."""
        return self._clients.instance(
            instance_id,
            _attributes(context, instance_id),
            self._subscriptions.by_name.values(),
            self._subscriptions.version,
        )

    async def receive(
        self, context: RequestContext, request: PushTelemetryRequest, requested: tuple[str, ...]
    ) -> None:
        """Count the metrics of a push; raises if they cannot be decoded."""
        loop = asyncio.get_running_loop()
        data = bytes(request.metrics)
        points = await loop.run_in_executor(_THREAD, payload.read, request.compression_type, data)
        software = context.client.software_name or UNKNOWN
        self._metrics.pushed(software)
        for point in points:
            if requested != (ALL_METRICS,) and not point.metric.startswith(requested):
                continue
            if point.is_added:
                self._metrics.add(software, point.metric, point.value)
            else:
                self._metrics.observe(software, point.metric, point.value)


def _attributes(context: RequestContext, instance_id: bytes) -> dict[str, str]:
    """What subscriptions match clients by; ids are in Kafka's notation."""
    client = context.client
    return {
        "client_instance_id": base64.urlsafe_b64encode(instance_id).decode().rstrip("="),
        "client_id": context.client_id or "",
        "client_software_name": client.software_name,
        "client_software_version": client.software_version,
        "client_source_address": client.host,
        "client_source_port": str(client.port),
    }
