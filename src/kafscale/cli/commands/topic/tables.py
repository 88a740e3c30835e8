"""How `kafscale topic` prints topics for people: the data of `topic_admin` in tables."""

from collections.abc import Iterable, Sequence

from kafscale.admin.topics.topics import DescribedTopic, ListedTopic, PartitionOffsets
from kafscale.cli.output import print_line, print_table
from kafscale.text.formatting import format_size, pluralize


def print_list(topics: Sequence[ListedTopic]) -> None:
    if not topics:
        print_line("there are no topics; create one with: kafscale topic create NAME")
        return
    print_table(
        ("topic", "partitions", ""),
        (
            (
                (topic.name or "", "bold"),
                str(topic.partition_count),
                "internal" if topic.internal else "",
            )
            for topic in topics
        ),
    )


def print_descriptions(topics: Iterable[DescribedTopic]) -> None:
    for place, topic in enumerate(topics):
        if place:
            print_line()
        _print_description(topic)


def _print_description(topic: DescribedTopic) -> None:
    partitions = topic.partitions
    records = pluralize(sum(map(record_count, partitions)), "record")
    mark = ", internal" if topic.internal else ""
    print_line(
        (topic.name or "", "bold"),
        f": {pluralize(len(partitions), 'partition')}, {records}{mark}, id {topic.topic_id}",
    )
    for name, value in topic.configs.items():
        print_line((f"{name} ", "dim"), str(value), indent=2)
    print_line()
    print_table(
        ("partition", "leader", "leader epoch", "start", "end", "records", "size"),
        (
            (
                str(partition.partition),
                ("none", "red") if partition.leader is None else str(partition.leader),
                str(partition.leader_epoch),
                _number(partition.start_offset),
                _number(partition.end_offset),
                _number(record_count(partition)),
                "-" if partition.size_bytes is None else format_size(partition.size_bytes),
            )
            for partition in partitions
        ),
    )


def record_count(partition: PartitionOffsets) -> int:
    """How many offsets lie between start and end."""
    return (partition.end_offset or 0) - (partition.start_offset or 0)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
