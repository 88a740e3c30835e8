"""Lists of replicas in requests, checked as in Kafka.

Invariant: a list that passes names at least one broker, each of them once, and all are registered:
the first one can own the partition at once. `metadata.cluster.replicas` says what a list means.
"""

from collections.abc import Collection, Sequence

from kafscale.broker.services import Services
from kafscale.errors import InvalidAssignmentError

Replicas = tuple[int, ...]


def check_replicas(broker: Services, broker_ids: Sequence[int]) -> Replicas:
    """Check the list of one partition."""
    if not broker_ids:
        raise InvalidAssignmentError(
            "The manual partition assignment includes an empty replica list."
        )
    previous = None
    for broker_id in sorted(broker_ids):
        if broker_id not in broker.cluster.brokers:
            raise InvalidAssignmentError(
                f"The manual partition assignment includes broker {broker_id},"
                " but no such broker is registered."
            )
        if broker_id == previous:
            raise InvalidAssignmentError(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    return tuple(broker_ids)


def check_new_replicas(
    broker: Services, lists: Collection[tuple[int, Sequence[int]]], count: int | None = None
) -> dict[int, Replicas]:
    """Check the lists of new partitions; `count` is how many replicas others of the topic have."""
    checked: dict[int, Replicas] = {}
    for index, broker_ids in lists:
        if index in checked:
            raise InvalidAssignmentError(
                f"Found multiple manual partition assignments for partition {index}"
            )
        checked[index] = check_replicas(broker, broker_ids)
        if count is not None and len(broker_ids) != count:
            raise InvalidAssignmentError(
                f"The manual partition assignment includes a partition with {len(broker_ids)}"
                " replica(s), but this is not consistent with previous partitions, which have"
                f" {count} replica(s)."
            )
        count = len(broker_ids)
        if all(broker.cluster.brokers[broker_id].is_draining for broker_id in broker_ids):
            raise InvalidAssignmentError(
                "All brokers specified in the manual partition assignment for partition"
                f" {index} are fenced or in controlled shutdown."
            )
    return checked
