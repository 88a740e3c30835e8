"""What can be limited: the keys of quotas, for whom each may be set, and how strictly it is kept.

    QUOTA_TYPES["producer_byte_rate"].check(1_048_576.0)

The keys are Kafka's, but for `request_rate`, and for `connection_creation_rate` of users. All are
rates: so much a second, on each broker. How fast a client may be for a moment, and how long it may
be told to wait, differs by what a client that waits would break:

* bytes: a burst of a second's worth, where Kafka's windows let ten pass; waits of up to a minute,
  as long as a large request to a small quota needs;
* requests: waits are short, because heartbeats wait as well;
* partitions: Kafka's own bucket, eleven seconds' worth (KIP-599);
* connections: a second, as in Kafka, for those who are turned away; a few for those who log in.
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
    """What is counted a second, in words."""
    burst_seconds: float = 1.0
    """Unused rate of how much time can be used at once."""
    wait_seconds_max: float = 10.0
    """The longest time that a client is told to wait, and the longest debt that is remembered."""
    integer_max: int | None = None
    """Up to where values go that have to be whole numbers; None for others."""

    def check(self, value: float) -> None:
        """Raise what is wrong about a value, in Kafka's words."""
        if not value > 0:  # What is no number at all is not greater either.
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
            counts="bytes of requests to produce",
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
            counts="percents of the time of a broker's event loop",
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
"""All that can be limited, by key."""

_OF_CLIENTS: Final = QUOTA_TYPES.keys() - {CONNECTION_CREATION_RATE}
_OF_ADDRESSES: Final = frozenset({CONNECTION_CREATION_RATE})


def quota_type_for(entity: QuotaEntity, key: str) -> QuotaType:
    """The kind of a key that may be set for somebody; raises where it may not."""
    if entity.ip is not None:
        allowed = key in _OF_ADDRESSES
    elif entity.client_id is not None:
        # A connection is opened before its client has a name, and a request may change the name.
        allowed = key in _OF_CLIENTS
    else:
        allowed = key in QUOTA_TYPES
    if not allowed:
        raise InvalidRequestError(f"Invalid configuration key {key}")
    return QUOTA_TYPES[key]
