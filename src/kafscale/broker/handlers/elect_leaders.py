"""ElectLeaders: v0-2.

Behaviour:
* The preferred leader of a partition is the first broker of the replicas that were requested for
  it. If that broker is not the owner, the controller moves the partition to it anyway, as soon as
  it is live and not draining: an election waits until that is done, at most for the client's
  timeout and for `requestTimeout`, and then gets REQUEST_TIMED_OUT. If it is not there:
  PREFERRED_LEADER_NOT_AVAILABLE.
* A partition without requested replicas has any broker as its preferred leader. So has an unclean
  election: ELECTION_NOT_NEEDED if there is a leader. A partition without one gets one soon:
  PREFERRED_LEADER_NOT_AVAILABLE, or ELIGIBLE_LEADERS_NOT_AVAILABLE.
* A request for all partitions (null) returns all topics, with the partitions for which an election
  was needed.
* Requires ALTER on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v1+: a top-level error, and the election type.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.replicas import preferred_owner
from kafscale.metadata.schema.model import NO_BROKER
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.elect_leaders import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from kafscale.text.topic_partition import TopicPartition

PREFERRED, UNCLEAN = 0, 1

_NO_LEADER_ERRORS: Final = {
    PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
"""The election types, each with the error if no leader is available."""

_MESSAGES: Final = {
    ErrorCode.NONE: None,
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "Eligible topic partition leaders are not available."
    ),
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
}


_AFTER_WAITING: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: ErrorCode.NONE,
    ErrorCode.NONE: ErrorCode.REQUEST_TIMED_OUT,
}
"""What an outcome means once an election was waited for."""


async def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    if request.election_type not in _NO_LEADER_ERRORS:
        raise InvalidRequestError(f"Unknown election type {request.election_type}")
    broker = context.broker
    requested = _requested(broker, request)

    def outcomes(part: Sequence[TopicPartition]) -> list[ErrorCode]:
        return [_outcome(broker, *each, request.election_type) for each in part]

    codes = await slices.each(context, requested, outcomes)
    results = dict(zip(requested, codes, strict=True))
    elected = [each for each, code in results.items() if code is ErrorCode.NONE]
    results.update(await _wait_until_elected(broker, elected, request.timeout_ms))
    if request.topics is not None:
        return ElectLeadersResponse(
            topics=[
                ElectedTopic(
                    name=topic.name,
                    partitions=[
                        _result(broker, topic.name, index, results[topic.name, index])
                        for index in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    topics = {name: ElectedTopic(name=name, partitions=[]) for name, _ in results}
    for (name, index), code in results.items():
        if code is not ErrorCode.ELECTION_NOT_NEEDED:
            topics[name].partitions.append(_result(broker, name, index, code))
    return ElectLeadersResponse(topics=list(topics.values()))


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
                name=topic.name,
                partitions=[
                    ElectedPartition(index=index, error_code=error.code, error_message=str(error))
                    for index in topic.partitions
                ],
            )
            for topic in request.topics or ()
        ],
    )


def _requested(broker: Services, request: ElectLeadersRequest) -> list[TopicPartition]:
    if request.topics is not None:
        return [(topic.name, index) for topic in request.topics for index in topic.partitions]
    topics = sorted(broker.topic_store.topics.items())
    return [(name, index) for name, topic in topics for index in range(topic.partitions)]


def _outcome(broker: Services, name: str, index: int, election_type: int) -> ErrorCode:
    """What an election would change: nothing, the leader (`NONE`), or why that is impossible."""
    topic = broker.topic_store.find(name)
    if topic is None or not 0 <= index < topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    leader_id, _ = broker.cluster.leader(name, index)
    # Only the first of the list is preferred: others stand in for it.
    first = () if election_type == UNCLEAN else topic.replicas.get(index, ())[:1]
    if leader_id != NO_BROKER and first in {(), (leader_id,)}:
        return ErrorCode.ELECTION_NOT_NEEDED
    if preferred_owner(first, broker.cluster.brokers) == NO_BROKER:
        return _NO_LEADER_ERRORS[election_type]
    return ErrorCode.NONE


async def _wait_until_elected(
    broker: Services, elected: Sequence[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, ErrorCode]:
    """Wait until the preferred leaders own these partitions; return the outcome of each."""
    waiting = list(elected)

    def is_done() -> bool:
        # One after the other: a change must not cost a check of thousands of partitions.
        while waiting and _outcome(broker, *waiting[-1], PREFERRED) is not ErrorCode.NONE:
            waiting.pop()
        return not waiting

    limit_ms = min(max(timeout_ms, 0), broker.config.network.request_timeout_ms)
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_ms / 1000):
            await broker.cluster.wait_for(is_done)
    outcomes = {each: _outcome(broker, *each, PREFERRED) for each in elected}
    return {each: _AFTER_WAITING.get(code, code) for each, code in outcomes.items()}


def _result(broker: Services, name: str, index: int, code: ErrorCode) -> ElectedPartition:
    if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        message = _MESSAGES[code]
    elif name in broker.topic_store.visible:
        message = f"No such partition as {name}-{index}"
    else:
        message = f"No such topic as {name}"
    return ElectedPartition(index=index, error_code=code, error_message=message)
