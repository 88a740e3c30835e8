"""AlterReplicaLogDirs: v1-2.

Behaviour:
* There is one log directory, the object store, under the name that DescribeLogDirs returns. What
  this broker owns lies there already: no error, and nothing to do.
* Another directory is LOG_DIR_NOT_FOUND; a partition that this broker does not own, or that does
  not exist, is REPLICA_NOT_AVAILABLE, as in Kafka.
* Requires ALTER on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes: all versions behave alike.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    MovedPartition,
    MovedTopic,
)
from kafscale.storage.objects.factory import describe_objects


def handle(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    path = describe_objects(context.broker.config)
    topics: dict[str, MovedTopic] = {}
    for log_dir in request.log_dirs:
        for topic in log_dir.topics:
            result = topics.setdefault(topic.name, MovedTopic(name=topic.name, partitions=[]))
            for index in topic.partitions:
                code = ErrorCode.LOG_DIR_NOT_FOUND
                if log_dir.path == path:
                    code = _code(context, topic.name, index)
                result.partitions.append(MovedPartition(index=index, error_code=code))
    return AlterReplicaLogDirsResponse(topics=list(topics.values()))


def error_response(
    _context: RequestContext, request: AlterReplicaLogDirsRequest, error: KafscaleError
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
    return AlterReplicaLogDirsResponse(
        topics=[
            MovedTopic(
                name=topic.name,
                partitions=[
                    MovedPartition(index=index, error_code=error.code) for index in topic.partitions
                ],
            )
            for log_dir in request.log_dirs
            for topic in log_dir.topics
        ]
    )


def _code(context: RequestContext, topic: str, index: int) -> ErrorCode:
    is_owned = context.broker.storage.logs.get(topic, index) is not None
    return ErrorCode.NONE if is_owned else ErrorCode.REPLICA_NOT_AVAILABLE
