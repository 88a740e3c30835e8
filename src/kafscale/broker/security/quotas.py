"""`ClientQuotas`: charges requests and connections to quotas, and computes throttle times.

    throttled_ms = 0 if quotas.is_idle else quotas.charge(context, response, busy_seconds)

Invariants, which are Kafka's:

* A response is sent at once; it carries the throttle time, and the connection is muted for that
  long (KIP-219). No request is refused for a quota, except changes of topics from the versions on
  in which clients know the error (KIP-599).
* Every broker enforces quotas on its own. Authentication requests are free.
* While no quota is configured, none of this costs anything.

`security.quota.limits` finds the quota of a client; `connection` mutes, and `dispatcher` puts the
throttle time into responses.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, ThrottledError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.metadata.access.store import AccessStore
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.messages.create_partitions import CREATE_PARTITIONS
from kafscale.protocol.messages.create_topics import CREATE_TOPICS
from kafscale.protocol.messages.delete_topics import DELETE_TOPICS
from kafscale.protocol.messages.fetch import FetchResponse
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE
from kafscale.security.principal import ANONYMOUS, Principal
from kafscale.security.quota.entities import address
from kafscale.security.quota.limits import Buckets, Quotas
from kafscale.security.quota.types import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    REQUEST_RATE,
)

REFUSED_SINCE: Final = {CREATE_TOPICS.key: 6, DELETE_TOPICS.key: 5, CREATE_PARTITIONS.key: 3}
"""The versions from which on changes of topics are refused; older versions are only throttled.
Auto-creation of topics is refused as well: such a topic stays unknown."""

FETCH_SECONDS_MAX: Final = 10
"""How many seconds of a quota one fetch may use: as many as Kafka's quota windows have."""

REFUSED_CONNECTION_SECONDS_MAX: Final = 1.0
"""How long a refused connection is kept open, to slow down clients that reconnect."""

_FREE: Final = frozenset({SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key})


class ClientQuotas:
    """The client quotas of a broker."""

    def __init__(
        self, access_store: AccessStore, counters: SecurityCounters, timer: Callable[[], float]
    ) -> None:
        """`timer` returns monotonic seconds."""
        self._quotas = Quotas(access_store.quotas)
        self._counters = counters
        self._timer = timer
        self.is_idle = self._quotas.is_empty
        """True if no quota is configured, so that nothing has to be charged."""
        access_store.subscribe_quotas(self._changed)

    def charge(self, context: RequestContext, response: Message | None, busy_seconds: float) -> int:
        """Charge a request to its client's quotas; returns the throttle time in ms.

        To be called once for every request that is answered, or that expects no response.
        `busy_seconds` is the time that the event loop spent on it, without the time it waited.
        """
        buckets = self._buckets(context)
        if not buckets:
            return 0
        now = self._timer()
        waits = {}
        for key, bucket in buckets.items():
            amount = _amount(key, context, response, busy_seconds)
            waits[key] = 0.0 if amount is None else bucket.consume(amount, now)
        longest = max(waits, key=waits.__getitem__)
        return self._throttle_ms(longest, waits[longest])

    def charge_mutation(self, context: RequestContext, partition_count: int) -> None:
        """Charge partitions that are about to be created or deleted; raises `ThrottledError`.

        As in Kafka, a quota that is not used up allows any number; only the next request waits.
        Versions that do not know the error are not refused: `charge` throttles them.
        """
        bucket = self._buckets(context).get(CONTROLLER_MUTATION_RATE)
        if bucket is None:
            return
        now = self._timer()
        if not _is_only_throttled(context) and bucket.debt_seconds(now) > 0:
            raise ThrottledError("The throttling quota has been exceeded.")
        bucket.consume(partition_count, now)

    def fetch_bytes_max(self, context: RequestContext, bytes_max: int) -> int:
        """Limit the size of one fetch, so that its client is not throttled for too long."""
        bucket = self._buckets(context).get(CONSUMER_BYTE_RATE)
        return bytes_max if bucket is None else min(bytes_max, int(bucket.rate * FETCH_SECONDS_MAX))

    def connection_delay_ms(self, host: str) -> int:
        """Charge a new connection; returns 0, or after how many ms to close it unserved."""
        if self.is_idle:
            return 0
        try:
            ip = address(host)
        except InvalidRequestError:
            return 0  # Some clients have no IP address, for example those of a Unix socket.
        now = self._timer()
        bucket = self._quotas.for_address(ip, now).get(CONNECTION_CREATION_RATE)
        wait = 0.0 if bucket is None else bucket.try_consume(1, now)
        return self._throttle_ms(
            CONNECTION_CREATION_RATE, min(wait, REFUSED_CONNECTION_SECONDS_MAX)
        )

    def login_delay_ms(self, principal: Principal) -> int:
        """Charge the login of a new connection; returns for how many ms to mute it.

        Reauthentication is not charged.
        """
        if self.is_idle:
            return 0
        now = self._timer()
        bucket = self._quotas.for_client(principal.user, "", now).get(CONNECTION_CREATION_RATE)
        return self._throttle_ms(
            CONNECTION_CREATION_RATE, bucket.consume(1, now) if bucket else 0.0
        )

    def _buckets(self, context: RequestContext) -> Buckets:
        client = context.client
        if self.is_idle or context.api.key in _FREE:
            return {}
        if client.principal is ANONYMOUS and client.listener.authenticates:
            return {}  # The principal is not known yet.
        return self._quotas.for_client(
            client.principal.user, context.client_id or "", self._timer()
        )

    def _throttle_ms(self, key: str, wait_seconds: float) -> int:
        wait_ms = math.ceil(wait_seconds * 1000)
        if wait_ms:
            self._counters.throttled[key] = self._counters.throttled.get(key, 0) + 1
        return wait_ms

    def _changed(self, _entity: QuotaEntity) -> None:
        self._quotas.invalidate()
        self.is_idle = self._quotas.is_empty


def fetched_bytes(response: FetchResponse) -> int:
    """The size of the records in a response, which is nearly all of it."""
    return sum(
        len(records)
        for topic in response.topics
        for partition in topic.partitions
        for records in partition.records or ()
    )


def _amount(
    key: str, context: RequestContext, response: Message | None, busy_seconds: float
) -> float | None:
    """What a request consumes of one quota; None if the quota does not apply to it."""
    api_key = context.api.key
    if key == REQUEST_RATE:
        return 1
    if key == REQUEST_PERCENTAGE:
        return 100 * busy_seconds
    if key == PRODUCER_BYTE_RATE and api_key == PRODUCE.key:
        return context.request_bytes
    if key == CONSUMER_BYTE_RATE and isinstance(response, FetchResponse):
        return fetched_bytes(response)
    if key == CONTROLLER_MUTATION_RATE and api_key in REFUSED_SINCE:
        # `charge_mutation` has consumed it. An allowed request is not throttled; a refused one is,
        # and so is one that would have been refused in a newer version.
        is_due = _is_only_throttled(context) or _is_refused(response)
        return 0 if is_due else None
    return None


def _is_only_throttled(context: RequestContext) -> bool:
    return context.version < REFUSED_SINCE.get(context.api.key, 0)


def _is_refused(response: Any) -> bool:
    return response is not None and any(
        topic.error_code == ThrottledError.code for topic in response.topics
    )
