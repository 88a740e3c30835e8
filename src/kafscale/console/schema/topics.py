"""Topics, partitions, configs and segments."""

from typing import Literal

from kafscale.console.schema.base import RequestModel, ResponseModel, Series

Order = Literal["asc", "desc"]
TopicSort = Literal["name", "partitions", "records", "size", "produce", "fetch"]


class TopicQuery(RequestModel):
    search: str = ""
    internal: bool = False
    sort: TopicSort = "name"
    order: Order = "asc"
    page: int = 1
    size: int = 50


class Topic(ResponseModel):
    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int
    record_count: int | None
    size_bytes: int | None
    produce_bytes_per_second: float | None
    fetch_bytes_per_second: float | None


class TopicPage(ResponseModel):
    as_of_ms: int
    total: int
    page: int
    size: int
    items: list[Topic]


class Partition(ResponseModel):
    partition: int
    leader: int | None
    leader_epoch: int
    state: str
    moving_to: int | None
    start_offset: int | None
    rolled_offset: int | None
    """Records below it are in segments; from here to the high watermark they are in the WAL."""
    high_watermark: int | None
    end_offset: int | None
    record_count: int | None
    size_bytes: int | None


class TopicDetail(ResponseModel):
    topic: Topic
    partitions: list[Partition]
    throughput: list[Series]


class Config(ResponseModel):
    name: str
    value: str | None
    default: str | None
    is_set: bool
    """True if it is set for this topic."""
    read_only: bool
    sensitive: bool
    type: str
    documentation: str | None


class Segment(ResponseModel):
    base_offset: int
    last_offset: int | None
    """Null for the newest segment if its footer could not be read."""
    size_bytes: int
    created_at_ms: int
    key: str
    has_index: bool


class WalTail(ResponseModel):
    """The part of a partition that is only in WAL objects."""

    from_offset: int
    to_offset: int
    record_count: int
    object_count: int | None
    size_bytes: int | None


class SegmentPage(ResponseModel):
    partition: int
    total: int
    size_bytes: int
    page: int
    size: int
    items: list[Segment]
    """Newest first."""
    wal: WalTail | None


class SegmentQuery(RequestModel):
    partition: int = 0
    page: int = 1
    size: int = 50


class TopicConsumer(ResponseModel):
    group: str
    state: str
    member_count: int
    lag: int | None
    lag_by_partition: dict[str, int | None]


class CreateTopic(RequestModel):
    name: str
    partition_count: int | None = None
    configs: dict[str, str] = {}


class AlterConfigs(RequestModel):
    set: dict[str, str] = {}
    delete: list[str] = []


class Grow(RequestModel):
    partition_count: int


class DeleteTopic(RequestModel):
    confirm: str
    """The name of the topic, entered again."""
