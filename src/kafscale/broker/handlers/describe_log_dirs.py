"""DescribeLogDirs: v0-5.

Behaviour:
* There is one directory, the object store, under the name that the broker's log gives it. A
  partition's size is that of its segments and of what still waits to become one.
* Topics and partitions that do not exist are left out, as in Kafka.
* Needs DESCRIBE on the cluster, CLUSTER_AUTHORIZATION_FAILED otherwise; where the store is, is not
  told then.

Version notes:
* v3+: an error of the whole answer; before, it is told as the directory's.
* v4+: the size of the volume, which no store tells.
"""

from collections.abc import Iterator
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import AuthorizationError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDir,
    PartitionInLogDir,
    TopicInLogDir,
)
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.factory import describe_objects

ERROR_SINCE: Final = 3


def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    broker = context.broker
    topics = [
        TopicInLogDir(name=name, partitions=[_measured(partition) for partition in partitions])
        for name, partitions in _wanted(broker, request)
        if partitions
    ]
    return DescribeLogDirsResponse(
        log_dirs=[LogDir(path=describe_objects(broker.config), topics=topics)]
    )


def error_response(
    context: RequestContext, _request: DescribeLogDirsRequest, error: KafscaleError
) -> DescribeLogDirsResponse:
    if isinstance(error, AuthorizationError):
        is_told = context.version >= ERROR_SINCE
        log_dirs = [] if is_told else [LogDir(error_code=error.code)]
        return DescribeLogDirsResponse(error_code=error.code, log_dirs=log_dirs)
    path = describe_objects(context.broker.config)
    return DescribeLogDirsResponse(
        error_code=error.code, log_dirs=[LogDir(error_code=error.code, path=path)]
    )


def _wanted(
    broker: Services, request: DescribeLogDirsRequest
) -> Iterator[tuple[str, list[PartitionLog]]]:
    logs = broker.storage.logs
    if request.topics is None:
        for name in broker.catalog.topics:
            yield name, logs.of_topic(name)
    else:
        for topic in request.topics:
            numbers = set(topic.partitions)
            found = logs.of_topic(topic.name)
            yield topic.name, [partition for partition in found if partition.partition in numbers]


def _measured(partition: PartitionLog) -> PartitionInLogDir:
    return PartitionInLogDir(
        index=partition.partition,
        size_bytes=partition.segments.total_bytes + partition.tail.unrolled_bytes,
    )
