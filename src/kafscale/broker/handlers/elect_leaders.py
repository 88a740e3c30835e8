"""ElectLeaders: v0-2.

Behaviour:
* A partition with a leader already has the preferred one: ELECTION_NOT_NEEDED. One without a leader
  gets one soon: PREFERRED_LEADER_NOT_AVAILABLE, or ELIGIBLE_LEADERS_NOT_AVAILABLE. A request for
  all partitions (null) returns those for which an election was tried, which are none.
* Requires ALTER on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v1+: a top-level error, and the election type.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, KafscaleError, UnknownTopicError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

PREFERRED, UNCLEAN = 0, 1

_NO_LEADER_ERRORS: Final = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
"""The election types, each with the error if no leader is available."""


def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    if request.election_type not in _NO_LEADER_ERRORS:
        raise InvalidRequestError(f"Unknown election type: {request.election_type}")
    return ElectLeadersResponse(
        topics=[
            ElectedTopic(
                name=topic.name,
                partitions=[
                    _elect(context.broker, topic.name, index, request.election_type)
                    for index in topic.partitions
                ],
            )
            for topic in request.topics or ()
        ]
    )


def error_response(
    context: RequestContext, request: ElectLeadersRequest, error: KafscaleError
) -> ElectLeadersResponse | None:
    """The top-level error; in v0, the same for every partition."""
    if context.version == 0 and not request.topics:
        return None
    return ElectLeadersResponse(
        error_code=error.code,
        topics=[
            ElectedTopic(
                name=topic.name, partitions=[_failed(index, error) for index in topic.partitions]
            )
            for topic in request.topics or ()
        ],
    )


def _elect(broker: Services, topic: str, index: int, election_type: int) -> ElectedPartition:
    existing = broker.topic_store.get(topic)
    if existing is None or not 0 <= index < existing.partitions:
        return _failed(index, UnknownTopicError(f"topic {topic!r} has no partition {index}"))
    leader_id, _ = broker.cluster.leader(topic, index)
    code = (
        ErrorCode.ELECTION_NOT_NEEDED
        if leader_id != NO_BROKER
        else _NO_LEADER_ERRORS[election_type]
    )
    return ElectedPartition(index=index, error_code=code, error_message=code.message)


def _failed(index: int, error: KafscaleError) -> ElectedPartition:
    return ElectedPartition(index=index, error_code=error.code, error_message=str(error))
