"""What every request has to obey that creates, changes or deletes something.

The law: a broker whose settings keep administration from its clients says so to all of them in the
same words, and no single request makes more logs than a broker can bear. What else each request may
ask for is left to its handler.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import PolicyViolationError
from kafscale.metadata.access.model import Operation, ResourceType

PARTITIONS_COUNT_MAX: Final = 10_000
"""How many partitions all topics of one request may get: as many as Kafka's controller allows."""

TIMEOUT_MS_MIN: Final = 5_000
"""The least time that a change is given. Clients send 0 to say that they do not want to wait for
other brokers to hear of it; nobody asks for a change that is given up before it was tried."""


def check_allowed(broker: Services) -> None:
    """Refuse, where administration is not for clients."""
    if not broker.config.broker.allow_admin_apis:
        raise PolicyViolationError("broker.allowAdminApis is false: clients may change nothing")


def creatable(context: RequestContext, names: Iterable[str]) -> set[str]:
    """Which of these topics the client may create, as far as that is a question of permission."""
    wanted = set(names)
    if not wanted or context.may(Operation.CREATE, ResourceType.CLUSTER, quiet=True):
        return wanted
    return {name for name in wanted if context.may(Operation.CREATE, ResourceType.TOPIC, name)}


def check_new_partitions(counts: Iterable[int]) -> None:
    """Refuse a request that would take all memory; counts that make no sense are not its matter."""
    if sum(max(count, 0) for count in counts) > PARTITIONS_COUNT_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")
