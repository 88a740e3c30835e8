"""`Throttling`: what requests and connections use of quotas, and how long clients have to wait.

    throttled_ms = 0 if throttling.is_idle else throttling.charge(context, response, busy_seconds)

The laws, which are Kafka's:

* An answer is given at once; the client is told for how long it is to be quiet, and its connection
  is not read for so long (KIP-219). Nothing is refused, but for changes of topics: those are, from
  the versions on in which clients know the error (KIP-599).
* Quotas hold for each broker by itself. What logging in takes is free.
* While there is no quota at all, none of this costs anything.

Which limits hold for whom is said in `security.quota.limits`; that a connection is left alone, and
that answers say so, is left to `connection` and `dispatch`.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, ThrottledError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.metadata.access.store import AclStore
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
"""The versions from which on changes of topics are refused, where older ones only have to wait.
Topics that come into being by being named are not created, and stay unknown."""

FETCH_SECONDS_MAX: Final = 10
"""For how long one fetch may use up a quota; as long as Kafka's windows are."""

REFUSAL_SECONDS_MAX: Final = 1.0
"""How long a connection is held that is turned away: long enough to slow down who tries again."""

_FREE: Final = frozenset({SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key})


class Throttling:
    """Keeps the clients of a broker within their quotas."""

    def __init__(
        self, rules: AclStore, traffic: SecurityCounters, timer: Callable[[], float]
    ) -> None:
        """`timer` tells a time in seconds that never goes back."""
        self._quotas = Quotas(rules.quotas)
        self._traffic = traffic
        self._timer = timer
        self.is_idle = self._quotas.is_empty
        """Whether there are no quotas, so that nobody has to be charged anything."""
        rules.subscribe_quotas(self._changed)

    def charge(self, context: RequestContext, response: Message | None, busy_seconds: float) -> int:
        """Record what a request took; for how many ms its client is to be left alone.

        To be called once for every request that is answered, or that wants no answer.
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
        return self._told(longest, waits[longest])

    def mutate(self, context: RequestContext, partition_count: int) -> None:
        """Record that partitions are about to be created or deleted; raises where that is too much.

        As in Kafka, a quota that is not used up lets any number pass; only the next has to wait.
        Versions that do not know the error are not refused: `charge` tells them to wait.
        """
        bucket = self._buckets(context).get(CONTROLLER_MUTATION_RATE)
        if bucket is None:
            return
        now = self._timer()
        if not _only_waits(context) and bucket.debt_seconds(now) > 0:
            raise ThrottledError("The throttling quota has been exceeded.")
        bucket.consume(partition_count, now)

    def fetch_bytes_max(self, context: RequestContext, bytes_max: int) -> int:
        """How much one fetch may bring, so that its client need not wait for too long after it."""
        bucket = self._buckets(context).get(CONSUMER_BYTE_RATE)
        return bytes_max if bucket is None else min(bytes_max, int(bucket.rate * FETCH_SECONDS_MAX))

    def connection_delay_ms(self, host: str) -> int:
        """Record a new connection: 0, or after how many ms to close it without having served it."""
        if self.is_idle:
            return 0
        try:
            ip = address(host)
        except InvalidRequestError:
            return 0  # Not everything that connects has an address, such as a socket in a file.
        now = self._timer()
        bucket = self._quotas.for_address(ip, now).get(CONNECTION_CREATION_RATE)
        wait = 0.0 if bucket is None else bucket.try_consume(1, now)
        return self._told(CONNECTION_CREATION_RATE, min(wait, REFUSAL_SECONDS_MAX))

    def login_delay_ms(self, identity: Principal) -> int:
        """Record that somebody has logged in; for how many ms the connection is to be left alone.

        Of a new connection only, not when a session is renewed.
        """
        if self.is_idle:
            return 0
        now = self._timer()
        bucket = self._quotas.for_client(identity.user, "", now).get(CONNECTION_CREATION_RATE)
        return self._told(CONNECTION_CREATION_RATE, bucket.consume(1, now) if bucket else 0.0)

    def _buckets(self, context: RequestContext) -> Buckets:
        client = context.client
        if self.is_idle or context.api.key in _FREE:
            return {}
        if client.identity is ANONYMOUS and client.listener.authenticates:
            return {}  # Nobody knows yet whom to charge.
        return self._quotas.for_client(client.identity.user, context.client_id or "", self._timer())

    def _told(self, key: str, wait_seconds: float) -> int:
        wait_ms = math.ceil(wait_seconds * 1000)
        if wait_ms:
            self._traffic.throttled[key] = self._traffic.throttled.get(key, 0) + 1
        return wait_ms

    def _changed(self, _entity: QuotaEntity) -> None:
        self._quotas.invalidate()
        self.is_idle = self._quotas.is_empty


def fetched_bytes(response: FetchResponse) -> int:
    """The size of the records in an answer, which is all but a little of it."""
    return sum(
        len(records)
        for topic in response.topics
        for partition in topic.partitions
        for records in partition.records or ()
    )


def _amount(
    key: str, context: RequestContext, response: Message | None, busy_seconds: float
) -> float | None:
    """What a request takes of one limit; None if the limit is not for such requests."""
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
        # It was spent before. Who was let through need not wait; who was refused, or would have
        # been if they knew the error, has to.
        is_due = _only_waits(context) or _is_refused(response)
        return 0 if is_due else None
    return None


def _only_waits(context: RequestContext) -> bool:
    return context.version < REFUSED_SINCE.get(context.api.key, 0)


def _is_refused(response: Any) -> bool:
    return response is not None and any(
        topic.error_code == ThrottledError.code for topic in response.topics
    )
