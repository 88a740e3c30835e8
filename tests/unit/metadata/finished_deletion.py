"""Finishes the deletion of a topic, as the controller does once its objects are deleted."""

from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import MetadataStore, Put, absent
from kafscale.metadata.topics.store import TopicStore

EMPTIED_MS = 7


async def finish_deletion(store: MetadataStore, topic_store: TopicStore, name: str) -> None:
    await store.commit([absent(keys.CONTROLLER)], [Put(keys.CONTROLLER, b"1")])
    controller = await store.get(keys.CONTROLLER)
    assert controller is not None
    await topic_store.mark_emptied(topic_store.deletions[name], EMPTIED_MS, controller)
