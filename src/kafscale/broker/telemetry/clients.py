"""`TelemetryClients`: the client instances that ask for subscriptions and push metrics. Pure.

Invariants: the number of instances is limited; the one that was silent for longest is forgotten
first. A subscription id is computed from the subscriptions and the instance, so that every broker
computes the same one, and a client may push to another broker than it asked. Order, errors and
their words are those of Kafka.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.broker.telemetry.subscription import ALL_METRICS, INTERVAL_MS_DEFAULT, Subscription
from kafscale.errors import (
    InvalidRequestError,
    TelemetryTooLargeError,
    ThrottledError,
    UnknownSubscriptionError,
    UnsupportedCodecError,
)
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.push_telemetry import PushTelemetryRequest
from kafscale.records.checksum import crc32c
from kafscale.records.compression import Codec

INSTANCES_MAX: Final = 16_384
"""How many client instances a broker remembers, as in Kafka."""

TELEMETRY_BYTES_MAX: Final = 1024 * 1024
"""How large the metrics of one push may be, compressed or not: Kafka's telemetry.max.bytes."""

ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The preferred one first, as in Kafka."""

RESERVED_IDS: Final = frozenset({UUID_ZERO, (1).to_bytes(16, "big")})
"""Ids that no instance may have."""


class ClientInstance(msgspec.Struct):
    """One client instance, with what it is subscribed to."""

    id: bytes
    version: int
    """Of the subscriptions that the instance was matched with."""
    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int
    asked_ms: int = 0
    pushed_ms: int = 0
    error: int = 0
    """The error code of its last request."""
    has_terminated: bool = False

    def ask(self, now_ms: int) -> None:
        """The instance asks for its subscription; raises if it asks too often."""
        is_early = now_ms - max(self.asked_ms, self.pushed_ms) < self.interval_ms
        if is_early and self.error not in _ASK_AGAIN:
            raise self._early()
        self.asked_ms = now_ms

    def push(self, request: PushTelemetryRequest, now_ms: int) -> None:
        """The instance pushes metrics; raises if they are not accepted."""
        if self.has_terminated and not request.terminating:
            raise InvalidRequestError(
                f"Client [{self.id.hex()}] sent the previous request with state terminating to"
                " TRUE, can not accept any requests after that"
            )
        is_due = self.asked_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.interval_ms
        if not is_due and not request.terminating:
            raise self._early()
        self.pushed_ms = now_ms
        if request.subscription_id != self.subscription_id:
            raise UnknownSubscriptionError(
                f"Unknown client subscription id for the client [{self.id.hex()}]"
            )
        if request.compression_type not in (Codec.NONE, *ACCEPTED_CODECS):
            raise UnsupportedCodecError(
                f"Unknown compression type: {request.compression_type} received in telemetry"
                f" request from [{self.id.hex()}]"
            )
        if len(request.metrics) > TELEMETRY_BYTES_MAX:
            raise TelemetryTooLargeError(
                f"Telemetry request from [{self.id.hex()}] is larger than the maximum allowed"
                f" size {TELEMETRY_BYTES_MAX}"
            )
        self.has_terminated = request.terminating

    def _early(self) -> ThrottledError:
        return ThrottledError(
            f"Request from the client [{self.id.hex()}] arrived before the next push interval time"
        )


_ASK_AGAIN: Final = frozenset({UnknownSubscriptionError.code, UnsupportedCodecError.code})
"""After these errors a client asks at once."""


class TelemetryClients:
    """The client instances of one broker."""

    def __init__(self, instances_max: int = INSTANCES_MAX) -> None:
        self._instances_max = instances_max
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def instance(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str],
        subscriptions: Iterable[Subscription],
        version: int,
    ) -> ClientInstance:
        """A known or new instance; one from before a change of subscriptions starts again."""
        known = self._instances.get(instance_id)
        if known is None or known.version != version:
            matching = [each for each in subscriptions if each.matches(attributes)]
            known = _matched(instance_id, matching, version)
            self._instances[instance_id] = known
            if len(self._instances) > self._instances_max:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        return known


def _matched(
    instance_id: bytes, subscriptions: Iterable[Subscription], version: int
) -> ClientInstance:
    """A new instance with these subscriptions."""
    metrics: set[str] = set()
    interval_ms = INTERVAL_MS_DEFAULT
    for each in subscriptions:
        metrics.update(each.metrics)
        interval_ms = min(interval_ms, each.interval_ms)
    requested = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    text = ",".join((*requested, str(interval_ms)))
    checksum = crc32c(instance_id + text.encode())
    # As a signed number, which is what the protocol has.
    signed = int.from_bytes(checksum.to_bytes(4, "big"), "big", signed=True)
    return ClientInstance(instance_id, version, signed, requested, interval_ms)
