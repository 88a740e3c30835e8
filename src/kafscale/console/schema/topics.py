"""Topics, their partitions and what is kept of them."""

from typing import Literal

from kafscale.console.schema.base import Asked, Series, View

Order = Literal["asc", "desc"]
TopicSort = Literal["name", "partitions", "records", "size", "produce", "fetch"]


class TopicQuery(Asked):
    search: str = ""
    internal: bool = False
    sort: TopicSort = "name"
    order: Order = "asc"
    page: int = 1
    size: int = 50


class Topic(View):
    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int
    record_count: int | None
    size_bytes: int | None
    produce_bytes_per_second: float | None
    fetch_bytes_per_second: float | None


class TopicPage(View):
    as_of_ms: int
    total: int
    page: int
    size: int
    items: list[Topic]


class Partition(View):
    partition: int
    leader: int | None
    leader_epoch: int
    state: str
    moving_to: int | None
    start_offset: int | None
    rolled_offset: int | None
    """Below it everything is in segments; from there to the high watermark it is in the WAL."""
    high_watermark: int | None
    end_offset: int | None
    record_count: int | None
    size_bytes: int | None


class TopicDetail(View):
    topic: Topic
    partitions: list[Partition]
    throughput: list[Series]


class Config(View):
    name: str
    value: str | None
    default: str | None
    is_set: bool
    """Whether it was set for this topic, rather than being the default."""
    read_only: bool
    sensitive: bool
    type: str
    documentation: str | None


class Segment(View):
    base_offset: int
    last_offset: int | None
    """Unknown for the last one until its footer was read."""
    size_bytes: int
    created_at_ms: int
    key: str
    has_index: bool


class WalTail(View):
    """What of a partition is in WAL objects only."""

    from_offset: int
    to_offset: int
    record_count: int
    object_count: int | None
    size_bytes: int | None


class SegmentPage(View):
    partition: int
    total: int
    size_bytes: int
    page: int
    size: int
    items: list[Segment]
    """The newest first."""
    wal: WalTail | None


class SegmentQuery(Asked):
    partition: int = 0
    page: int = 1
    size: int = 50


class TopicConsumer(View):
    group: str
    state: str
    member_count: int
    lag: int | None
    lag_by_partition: dict[str, int | None]


class CreateTopic(Asked):
    name: str
    partition_count: int | None = None
    configs: dict[str, str] = {}


class AlterConfigs(Asked):
    set: dict[str, str] = {}
    delete: list[str] = []


class Grow(Asked):
    partition_count: int


class DeleteTopic(Asked):
    confirm: str
    """The name of the topic once more, as a person has typed it."""
