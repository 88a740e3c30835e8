"""Topics, partitions, configs and segments."""

from typing import Literal

from kafscale.admin.topics import consumers, segments
from kafscale.admin.topics.configs import TopicConfig
from kafscale.admin.topics.describe import PartitionDescription
from kafscale.admin.topics.segments import SegmentInfo, SegmentInventory
from kafscale.admin.topics.usage import TopicUsage
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


Config = TopicConfig
Partition = PartitionDescription
Segment = SegmentInfo
TopicConsumer = consumers.TopicConsumer
WalTail = segments.WalTail


class Topic(TopicUsage, frozen=True):
    """A topic at one time, with its rates."""

    produce_bytes_per_second: float | None
    fetch_bytes_per_second: float | None
    dirty_ratio: float | None
    """The share of bytes that is not compacted yet, in the dirtiest partition of a compacted topic;
    None if it is unknown, or if the topic is not compacted."""


class TopicPage(ResponseModel):
    as_of_ms: int
    total: int
    page: int
    size: int
    items: list[Topic]


class TopicDetail(ResponseModel):
    topic: Topic
    partitions: list[Partition]
    throughput: list[Series]


class SegmentPage(SegmentInventory, kw_only=True):
    """A page of the segments of a partition, newest first."""

    page: int
    size: int
    wal: WalTail | None


class SegmentQuery(RequestModel):
    partition: int = 0
    page: int = 1
    size: int = 50


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
