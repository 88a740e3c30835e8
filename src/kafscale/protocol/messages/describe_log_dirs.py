"""DescribeLogDirs (35): the disk usage of partitions (KIP-113).

Version notes:
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
* v3: an error of the whole response.
* v4: the size and the free space of each volume (KIP-827).
* v5: whether a directory is closed to new partitions (KIP-1066).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Int64, Message, String, since


class TopicToDescribe(Message):
    name: String = ""
    partitions: list[Int32] = []


class DescribeLogDirsRequest(Message):
    topics: list[TopicToDescribe] | None = []
    """None for all topics."""


class PartitionInLogDir(Message):
    index: Int32 = 0
    size_bytes: Int64 = 0
    offset_lag: Int64 = 0
    """How far the replica is behind the high watermark, or a future one behind the current one."""
    is_future: Boolean = False
    """Whether this replica is being moved here and will replace the current one."""


class TopicInLogDir(Message):
    name: String = ""
    partitions: list[PartitionInLogDir] = []


class LogDir(Message):
    error_code: Int16 = 0
    path: String = ""
    topics: list[TopicInLogDir] = []
    total_bytes: Annotated[Int64, since(4)] = -1
    """The size of the volume; -1 if unknown."""
    usable_bytes: Annotated[Int64, since(4)] = -1
    """The free space of the volume; -1 if unknown."""
    is_cordoned: Annotated[Boolean, since(5)] = False


class DescribeLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    log_dirs: list[LogDir] = []


DESCRIBE_LOG_DIRS = Api(
    35, "DescribeLogDirs", DescribeLogDirsRequest, DescribeLogDirsResponse, 5, flexible_since=2
)
