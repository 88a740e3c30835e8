"""The quota types: their keys, the entities that they apply to, and their bursts.

    QUOTA_TYPES["producer_byte_rate"].check(1_048_576.0)

The keys are Kafka's, except `request_rate`, and `connection_creation_rate` of users. All are rates
per second and broker. Burst and maximum wait depend on what a waiting client would block:

* bytes: a burst of one second, where Kafka's windows allow ten; waits of up to a minute, as a large
  request with a small quota needs;
* requests: short waits, because heartbeats wait, too;
* partitions: Kafka's own token bucket of eleven seconds (KIP-599);
* connections: a second, as in Kafka, for rejected connections; longer for authentications.
"""

import math
from typing import Final

import msgspec

from kafscale.errors import InvalidRequestError
from kafscale.metadata.access.model import QuotaEntity

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_RATE: Final = "request_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1


class QuotaType(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be limited."""

    key: str
    counts: str
    """What is counted per second, for people."""
    burst_seconds: float = 1.0
    """How many seconds of unused rate may be used at once."""
    wait_seconds_max: float = 10.0
    """The longest throttle time, and the largest debt."""
    integer_max: int | None = None
    """The maximum, if values must be integers; else None."""

    def check(self, value: float) -> None:
        """Raise Kafka's error for an invalid value."""
        if not value > 0:  # NaN is rejected, too.
            raise InvalidRequestError(f"Quota {self.key} must be greater than 0")
        if self.integer_max is not None and value > self.integer_max:
            integer = "an INT" if self.integer_max == _INT_MAX else "a LONG"
            raise InvalidRequestError(f"Proposed value for {self.key} is too large for {integer}.")
        if math.isinf(value):
            raise InvalidRequestError(f"Proposed value for {self.key} is too large.")
        if self.integer_max is not None and value % 1.0 > 1e-6:
            raise InvalidRequestError(f"{self.key} cannot be a fractional value.")


QUOTA_TYPES: Final = {
    kind.key: kind
    for kind in (
        QuotaType(
            key=PRODUCER_BYTE_RATE,
            counts="bytes of produce requests",
            wait_seconds_max=60,
            integer_max=_LONG_MAX,
        ),
        QuotaType(
            key=CONSUMER_BYTE_RATE,
            counts="bytes of fetched records",
            wait_seconds_max=60,
            integer_max=_LONG_MAX,
        ),
        QuotaType(key=REQUEST_RATE, counts="requests"),
        QuotaType(
            key=REQUEST_PERCENTAGE,
            counts="percent of a broker's event loop time",
            wait_seconds_max=1,
        ),
        QuotaType(
            key=CONTROLLER_MUTATION_RATE,
            counts="partitions that are created or deleted",
            burst_seconds=11,
            wait_seconds_max=60,
        ),
        QuotaType(key=CONNECTION_CREATION_RATE, counts="new connections", integer_max=_INT_MAX),
    )
}
"""All quota types by key."""

_CLIENT_KEYS: Final = QUOTA_TYPES.keys() - {CONNECTION_CREATION_RATE}
_ADDRESS_KEYS: Final = frozenset({CONNECTION_CREATION_RATE})


def quota_type_for(entity: QuotaEntity, key: str) -> QuotaType:
    """The quota type of a key; raises if it does not apply to the entity."""
    if entity.ip is not None:
        allowed = key in _ADDRESS_KEYS
    elif entity.client_id is not None:
        # The client id is unknown when a connection is opened, and may change with each request.
        allowed = key in _CLIENT_KEYS
    else:
        allowed = key in QUOTA_TYPES
    if not allowed:
        raise InvalidRequestError(f"Invalid configuration key {key}")
    return QUOTA_TYPES[key]
