"""ElectLeaders: v0-2.

Behaviour:
* A partition that has a leader has the one that it should have: ELECTION_NOT_NEEDED. One that has
  none is about to get one: PREFERRED_LEADER_NOT_AVAILABLE, or ELIGIBLE_LEADERS_NOT_AVAILABLE. Of
  all partitions (null), only those are answered that an election was tried for, which is none.
* Needs ALTER on the cluster, CLUSTER_AUTHORIZATION_FAILED otherwise.

Version notes:
* v1+: an error of the whole answer, and the kind of election.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, KafscaleError, UnknownTopicError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

PREFERRED, UNCLEAN = 0, 1

_KINDS: Final = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
"""The kinds of elections, and what is said where there is nobody to elect at the moment."""


def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    if request.election_type not in _KINDS:
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
    """The error of the whole answer; before there was one, the same for every partition."""
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
    found = broker.catalog.get(topic)
    if found is None or not 0 <= index < found.partitions:
        return _failed(index, UnknownTopicError(f"there is no partition {index} of {topic!r}"))
    leader_id, _ = broker.cluster.leader(topic, index)
    code = ErrorCode.ELECTION_NOT_NEEDED if leader_id != NO_BROKER else _KINDS[election_type]
    return ElectedPartition(index=index, error_code=code, error_message=code.message)


def _failed(index: int, error: KafscaleError) -> ElectedPartition:
    return ElectedPartition(index=index, error_code=error.code, error_message=str(error))
