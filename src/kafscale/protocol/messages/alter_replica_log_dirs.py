"""AlterReplicaLogDirs (34): move replicas between the log directories of a broker (KIP-113).

Version notes:
* v1: the first one. Kafka 4 has dropped v0, which had the same layout.
* v2: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String


class TopicToMove(Message):
    name: String = ""
    partitions: list[Int32] = []


class LogDirToAlter(Message):
    path: String = ""
    """The absolute path of the directory that the replicas are moved to."""
    topics: list[TopicToMove] = []


class AlterReplicaLogDirsRequest(Message):
    log_dirs: list[LogDirToAlter] = []


class MovedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class MovedTopic(Message):
    name: String = ""
    partitions: list[MovedPartition] = []


class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[MovedTopic] = []


ALTER_REPLICA_LOG_DIRS = Api(
    34,
    "AlterReplicaLogDirs",
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    2,
    flexible_since=2,
    version_min=1,
)
