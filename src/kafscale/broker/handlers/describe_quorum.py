"""DescribeQuorum: v0-2.

Behaviour:
* The metadata is in etcd, or in a local file, and brokers share no log. In place of the log's, the
  response has the state of the cluster: the controller is the leader and the only voter, its term
  is the leader epoch, other live brokers are observers. Offsets are revisions of the metadata
  store: the newest that this broker has seen, -1 for other observers, of which it is not known.
* There is one partition, `__cluster_metadata` 0. As in Kafka, a request for others gets
  UNKNOWN_TOPIC_OR_PARTITION for all. While no controller is elected: LEADER_NOT_AVAILABLE.
* Requires DESCRIBE on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v1+: timestamps; only the leader's is known. v2+: error messages, and the controller's address.
"""

from typing import Final

from kafscale.broker.network.advertised import node
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)

METADATA_PARTITION: Final = ("__cluster_metadata", 0)
UNKNOWN: Final = -1
MESSAGES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "There is no leader for this topic-partition as we are in the middle of a leadership"
        " election."
    ),
}
INT32_MAX: Final = 2**31 - 1


def handle(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    requested = [(topic.name, each.index) for topic in request.topics for each in topic.partitions]
    if requested == [METADATA_PARTITION]:
        name, index = METADATA_PARTITION
        topic = QuorumTopic(name=name, partitions=[_partition(context, index)])
        return DescribeQuorumResponse(error_message=None, topics=[topic], nodes=_nodes(context))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            QuorumTopic(
                name=topic.name,
                partitions=[_failed(each.index, unknown) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def error_response(
    _context: RequestContext, _request: DescribeQuorumRequest, error: KafscaleError
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=str(error))


def _partition(context: RequestContext, index: int) -> QuorumPartition:
    broker = context.broker
    controller = broker.cluster.controller
    leader_id = broker.cluster.controller_id
    if controller is None or leader_id == NO_BROKER:
        return _failed(index, ErrorCode.LEADER_NOT_AVAILABLE)
    now_ms = broker.clock()
    revision = max(broker.cluster.revision, broker.topic_store.revision)
    return QuorumPartition(
        index=index,
        error_message=None,
        leader_id=leader_id,
        # A revision, which may grow beyond the field.
        leader_epoch=controller.mod_revision & INT32_MAX,
        high_watermark=revision,
        current_voters=[
            ReplicaState(
                replica_id=leader_id,
                log_end_offset=revision,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        ],
        observers=[
            ReplicaState(
                replica_id=broker_id,
                log_end_offset=revision if broker_id == broker.node_id else UNKNOWN,
            )
            for broker_id in sorted(broker.cluster.brokers)
            if broker_id != leader_id
        ],
    )


def _nodes(context: RequestContext) -> list[QuorumNode]:
    controller = node(context, context.broker.cluster.controller_id)
    if controller is None:
        return []
    name = context.client.listener.name
    listener = QuorumListener(name=name, host=controller.host, port=controller.port)
    return [QuorumNode(node_id=controller.id, listeners=[listener])]


def _failed(index: int, code: ErrorCode) -> QuorumPartition:
    return QuorumPartition(index=index, error_code=code, error_message=MESSAGES[code])
