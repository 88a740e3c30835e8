"""What groups are told of topics."""

from collections.abc import Iterator, Mapping

from kafscale.groups.model import TopicInfo
from kafscale.metadata.schema.model import Topic


def topic_facts(topics: Mapping[str, Topic]) -> dict[str, TopicInfo]:
    return {
        name: TopicInfo(name=name, id=topic.id, partition_count=topic.partitions)
        for name, topic in topics.items()
    }


class TopicNames(Mapping[bytes, str]):
    """The names of topics by their ids, as they are when somebody looks."""

    def __init__(self, by_id: Mapping[bytes, Topic]) -> None:
        self._by_id = by_id

    def __getitem__(self, topic_id: bytes) -> str:
        return self._by_id[topic_id].name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)
