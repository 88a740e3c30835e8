"""Finding the log that a client means: by its topic's name, or by its id where it has none."""

from kafscale.broker.services import Services
from kafscale.errors import UnknownTopicError, UnknownTopicIdError
from kafscale.storage.log import PartitionLog


def find_partition(broker: Services, name: str, topic_id: bytes, index: int) -> PartitionLog:
    """The log of a partition; an empty name says that the client goes by the id (KIP-516)."""
    if name:
        return broker.storage.logs.find(name, index)
    found = broker.storage.logs.find_by_id(topic_id, index)
    if found is not None:
        return found
    if topic_id in broker.catalog.by_id:
        raise UnknownTopicError(f"there is no partition {index}")
    raise UnknownTopicIdError("no topic has this id")
