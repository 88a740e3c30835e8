"""DescribeLogDirs: v0-5.

Behaviour:
* There is one log directory, the object store, under the name that the broker logs. The size of a
  partition is that of its segments and of its tail that is not rolled yet.
* Topics and partitions that do not exist are left out, as in Kafka.
* Requires DESCRIBE on the cluster, else CLUSTER_AUTHORIZATION_FAILED, without the store's name.

Version notes:
* v3+: a top-level error; before, it is the error of the directory.
* v4+: the size of the volume, which no object store reports.
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
        TopicInLogDir(name=name, partitions=[_measure(log) for log in logs])
        for name, logs in _requested_logs(broker, request)
        if logs
    ]
    return DescribeLogDirsResponse(
        log_dirs=[LogDir(path=describe_objects(broker.config), topics=topics)]
    )


def error_response(
    context: RequestContext, _request: DescribeLogDirsRequest, error: KafscaleError
) -> DescribeLogDirsResponse:
    if isinstance(error, AuthorizationError):
        has_error_field = context.version >= ERROR_SINCE
        log_dirs = [] if has_error_field else [LogDir(error_code=error.code)]
        return DescribeLogDirsResponse(error_code=error.code, log_dirs=log_dirs)
    path = describe_objects(context.broker.config)
    return DescribeLogDirsResponse(
        error_code=error.code, log_dirs=[LogDir(error_code=error.code, path=path)]
    )


def _requested_logs(
    broker: Services, request: DescribeLogDirsRequest
) -> Iterator[tuple[str, list[PartitionLog]]]:
    logs = broker.storage.logs
    if request.topics is None:
        for name in broker.topic_store.topics:
            yield name, logs.of_topic(name)
    else:
        for topic in request.topics:
            indexes = set(topic.partitions)
            topic_logs = logs.of_topic(topic.name)
            yield topic.name, [log for log in topic_logs if log.partition in indexes]


def _measure(log: PartitionLog) -> PartitionInLogDir:
    return PartitionInLogDir(
        index=log.partition, size_bytes=log.segments.total_bytes + log.tail.unrolled_bytes
    )
