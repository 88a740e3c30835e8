"""Doing to a topic what was planned: in the metadata store, one commit with a compare for each.

The law: never through Kafka's protocol, which brokers may keep from everybody. Brokers hear of a
change from the store, and remove the objects of a topic that was deleted.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kafscale.errors import UnknownTopicError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.operator.topics.plan import Action, Alter, Create, Grow

CREATE_MS_MAX: Final = 5_000
"""How long a new topic waits for an old one of its name to be gone, before that is told."""


class Event(NamedTuple):
    """What has happened, in a word and a sentence."""

    reason: str
    message: str


async def make(
    action: Action, name: str, catalog: Catalog, now_ms: int, new_id: Callable[[], bytes]
) -> tuple[Topic, Event]:
    """Do what was planned; the topic as it is then, and what there is to tell.

    Raises `StoreUnavailableError`, and one of `RefusedError` where others were faster.
    """
    match action:
        case Create(partitions=partitions, configs=configs):
            topic = await catalog.create(
                name, partitions, configs, now_ms, new_id(), timeout_ms=CREATE_MS_MAX
            )
            return topic, Event("Created", f"with {partitions} partitions")
        case Grow(partitions=partitions):
            topic = await catalog.grow(name, partitions)
            return topic, Event("Grown", f"to {partitions} partitions")
        case Alter():
            topic = await catalog.set_configs(name, action.on)
            return topic, Event("Altered", _told(action))


async def delete(name: str, topic_id: str, catalog: Catalog) -> Event | None:
    """Delete a topic if it is still the one that is meant; None if it is not there any more."""
    topic = catalog.get(name)
    if topic is None or topic.id.hex() != topic_id:
        return None
    try:
        await catalog.delete(name)
    except UnknownTopicError:
        return None  # Others were faster.
    return Event("Deleted", "with all its records")


def _told(alter: Alter) -> str:
    assigned = [f"{name}={value}" for name, value in sorted(alter.assigned.items())]
    return ", ".join([*assigned, *(f"{name} as by default" for name in sorted(alter.resets))])
