"""Checks of requests that create, change or delete topics, and auto-creation of topics.

Invariants: a broker that disables the admin APIs refuses all of them with the same message, and no
single request creates more partitions than a broker can serve. Auto-creation counts as a change by
the client, for its quotas and in the audit log; of several clients that name a missing topic at the
same time, one creates it.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import PolicyViolationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.store.base import time_limit
from kafscale.metadata.topics import internal

PARTITIONS_COUNT_MAX: Final = 10_000
"""How many partitions one request may create: as many as Kafka's controller allows."""

TIMEOUT_MS_MIN: Final = 5_000
"""The minimum timeout of a change. Clients send 0 if they do not want to wait until other brokers
know of it; a change that is given up before it was tried would be useless."""


def check_admin_allowed(broker: Services) -> None:
    """Raise if the settings disable the admin APIs."""
    if not broker.config.broker.allow_admin_apis:
        raise PolicyViolationError("admin requests are disabled: broker.allowAdminApis is false")


def authorized_to_create(context: RequestContext, names: Iterable[str]) -> set[str]:
    """The topics among these that the client is authorized to create."""
    topics = set(names)
    if not topics or context.is_authorized(Operation.CREATE, ResourceType.CLUSTER, quiet=True):
        return topics
    return {
        name for name in topics if context.is_authorized(Operation.CREATE, ResourceType.TOPIC, name)
    }


def check_new_partitions(counts: Iterable[int]) -> None:
    """Raise if a request creates too many partitions; handlers check for invalid counts."""
    if sum(max(count, 0) for count in counts) > PARTITIONS_COUNT_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")


async def auto_create(context: RequestContext, name: str, timeout_ms: int) -> None:
    """Create a topic that does not exist yet, for Metadata or Produce (auto.create.topics.enable).

    An internal topic is made to exist, as in Kafka. The caller has checked authorization. Raises
    `ThrottledError` if the quota is exceeded.
    """
    broker = context.broker
    if name in internal.PARTITIONS:
        async with time_limit(f"topic {name!r} was not created", timeout_ms):
            await broker.topic_store.internal.wait_declared(name, broker.clock())
        return
    partition_count = broker.config.topics.auto_create_partitions
    broker.quotas.charge_mutation(context, partition_count)
    if await broker.topics.create_if_missing(name, partition_count, timeout_ms):
        broker.audit.changed(context, "topic auto-created", topic=name, partitions=partition_count)
