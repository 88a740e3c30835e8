"""Finding the log that a client means: by its topic's name, or by its id where it has none.

The law: a partition that another broker serves, or one that this broker cannot prove to be its own
at this moment, is NOT_LEADER_OR_FOLLOWER; one that nobody has is unknown.
"""

from typing import NoReturn

from kafscale.broker.services import Services
from kafscale.errors import NotOwnerError, UnknownTopicError, UnknownTopicIdError
from kafscale.storage.log.partition_log import PartitionLog


def find_partition(broker: Services, name: str, topic_id: bytes, index: int) -> PartitionLog:
    """The log of a partition; an empty name says that the client goes by the id (KIP-516)."""
    logs = broker.storage.logs
    found = logs.get(name, index) if name else logs.find_by_id(topic_id, index)
    if found is None:
        _raise_missing(broker, name, topic_id, index)
    if not broker.registration.lease_is_valid:
        raise NotOwnerError("this broker waits for the metadata store to confirm its lease")
    return found


def find_named(broker: Services, name: str, index: int) -> PartitionLog:
    """The same for those who go by names only."""
    if not name:
        raise UnknownTopicError("a topic's name is never empty")
    return find_partition(broker, name, b"", index)


def _raise_missing(broker: Services, name: str, topic_id: bytes, index: int) -> NoReturn:
    topic = broker.catalog.get(name) if name else broker.catalog.by_id.get(topic_id)
    if topic is None and not name:
        raise UnknownTopicIdError("no topic has this id")
    if topic is None or not 0 <= index < topic.partitions:
        raise UnknownTopicError(f"there is no partition {index} of topic {name!r}")
    raise NotOwnerError(f"{topic.name}/{index} is not served here")
