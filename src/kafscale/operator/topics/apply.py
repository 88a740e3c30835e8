"""Executes planned changes of a topic in the metadata store, each in one conditional commit.

Invariant: never through Kafka's protocol, which brokers may restrict. Brokers learn of a change
from the store, and delete the objects of deleted topics.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kafscale.errors import UnknownTopicError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.operator.topics.plan import Action, Alter, Create, Grow

CREATE_MS_MAX: Final = 5_000
"""How long a new topic waits for an old one of the same name to be deleted."""


class Event(NamedTuple):
    """A Kubernetes event."""

    reason: str
    message: str


async def execute(
    action: Action, name: str, catalog: Catalog, now_ms: int, new_id: Callable[[], bytes]
) -> tuple[Topic, Event]:
    """Execute an action; return the topic as it is then, and the event to record.

    Raises `StoreUnavailableError`, or a `RefusedError` if a concurrent change was faster.
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
            return topic, Event("Altered", _describe(action))


async def delete(name: str, topic_id: str, catalog: Catalog) -> Event | None:
    """Delete a topic if it still has this id; None if it does not exist any more."""
    topic = catalog.get(name)
    if topic is None or topic.id.hex() != topic_id:
        return None
    try:
        await catalog.delete(name)
    except UnknownTopicError:
        return None  # Deleted concurrently.
    return Event("Deleted", "with all its records")


def _describe(alter: Alter) -> str:
    assigned = [f"{name}={value}" for name, value in sorted(alter.assigned.items())]
    return ", ".join(
        [*assigned, *(f"{name} reset to its default" for name in sorted(alter.resets))]
    )
