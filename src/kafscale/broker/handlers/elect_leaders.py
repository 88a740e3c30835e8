"""ElectLeaders: v0-2.

Behaviour:
* Every partition has the leader that it should have: ELECTION_NOT_NEEDED for each one named. Of all
  partitions (null), only those are answered that an election was tried for, which is none.

Version notes:
* v1+: an error of the whole answer, and the kind of election.
"""

from typing import Final

from kafscale.broker.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

PREFERRED, UNCLEAN = 0, 1

_KINDS: Final = {PREFERRED, UNCLEAN}


def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if request.election_type not in _KINDS:
        raise InvalidRequestError(f"Unknown election type: {request.election_type}")
    return ElectLeadersResponse(
        topics=[
            ElectedTopic(
                name=topic.name,
                partitions=[
                    _elect(context.broker, topic.name, index) for index in topic.partitions
                ],
            )
            for topic in request.topics or ()
        ]
    )


def refuse(
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


def _elect(broker: Services, topic: str, index: int) -> ElectedPartition:
    try:
        broker.storage.logs.find(topic, index)
    except KafscaleError as error:
        return _failed(index, error)
    code = ErrorCode.ELECTION_NOT_NEEDED
    return ElectedPartition(index=index, error_code=code, error_message=code.message)


def _failed(index: int, error: KafscaleError) -> ElectedPartition:
    return ElectedPartition(index=index, error_code=error.code, error_message=str(error))
