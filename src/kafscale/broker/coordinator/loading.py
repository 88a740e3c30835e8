"""Groups and offsets as an earlier life left them in the store.

The law: a record that cannot be read is told and left where it is; it stops no group but its own.
An offset of a topic that is gone, or that was created again since, is no offset any more.
"""

from collections.abc import Iterator, Mapping

from kafscale.broker.coordinator.directory import GroupDirectory
from kafscale.errors import DamagedObjectError
from kafscale.metadata import keys
from kafscale.metadata.group_encoding import decode_group, decode_offset
from kafscale.metadata.model import Topic
from kafscale.metadata.store import Entry, MetadataStore
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


async def load(
    store: MetadataStore, directory: GroupDirectory, topics: Mapping[str, Topic]
) -> None:
    """Bring back all groups; offsets that mean nothing any more are deleted."""
    snapshot = await store.range(keys.CONSUMERS)
    offsets = []
    for key, entry in _parsed(snapshot.entries):
        try:
            if isinstance(key, keys.ConsumerGroupKey):
                directory.restore(decode_group(entry))
            else:
                offsets.append((key, decode_offset(entry)))
        except DamagedObjectError as error:
            log.error("group record damaged", key=error.key, reason=error.reason)  # noqa: TRY400
    # A group that never had members has offsets and no record, so these come second.
    for key, committed in offsets:
        place = (key.topic, key.partition)
        hosted = directory.classic(key.group)
        hosted.offsets.restore(place, committed)
        topic = topics.get(key.topic)
        if topic is None or not committed.is_of(topic.id):
            hosted.offsets.forget((place,))


def _parsed(
    entries: tuple[Entry, ...],
) -> Iterator[tuple[keys.ConsumerGroupKey | keys.CommittedOffsetKey, Entry]]:
    for entry in entries:
        key = keys.parse(entry.key)
        if isinstance(key, keys.ConsumerGroupKey | keys.CommittedOffsetKey):
            yield key, entry
        else:
            log.warning("unknown key among groups", key=entry.key)
