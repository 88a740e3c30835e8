"""ConsumerGroupHeartbeat: v0-1.

Behaviour:
* A member of the consumer protocol joins (epoch 0), sends heartbeats, reconciles its assignment,
  and leaves (-1, or -2 as a static member that will rejoin). Fields that have not changed since the
  last heartbeat are left out, in requests and responses.
* Contradictory requests are INVALID_REQUEST: a blank group id, instance id or rack; joining without
  a subscription or a rebalance timeout, or with owned partitions.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED; and DESCRIBE on every topic that is
  subscribed by name, else TOPIC_AUTHORIZATION_FAILED. A regular expression matches the topics that
  the member may DESCRIBE.

Version notes:
* v0: a new member may join without a member id, and is assigned one.
* v1+: the member generates its id; topics may be subscribed by a regular expression.
"""

import base64
import uuid
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import (
    client_host,
    client_id,
    group_error_code,
    respond_when_done,
)
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.groups.effects import NO_REPLY_TOKEN, Reconciled
from kafscale.groups.events import ConsumerHeartbeat
from kafscale.groups.model import Partitions
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

CLIENT_IDS_SINCE: Final = 1

JOINING, LEAVING, STATIC_LEAVING = 0, -1, -2
"""Member epochs with a special meaning."""

NO_TIMEOUT: Final = -1


def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    names = request.subscribed_topic_names
    for name in dict.fromkeys(names or ()):
        context.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
    _check(context, request)
    event = ConsumerHeartbeat(
        reply_token=NO_REPLY_TOKEN,
        member_id=request.member_id or new_member_id(),
        member_epoch=request.member_epoch,
        instance_id=request.group_instance_id,
        client_id=client_id(context),
        client_host=client_host(context),
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_names=None if names is None else tuple(names),
        subscribed_regex=request.subscribed_topic_regex,
        can_describe=None
        if context.broker.authorizer is None
        else partial(context.can_describe, ResourceType.TOPIC),
        server_assignor=request.server_assignor,
        owned=_owned(request.owned_partitions),
    )
    return respond_when_done(
        context.broker.groups.consumer_heartbeat(request.group_id, event), _response
    )


def error_response(
    _context: RequestContext, _request: ConsumerGroupHeartbeatRequest, error: KafscaleError
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=group_error_code(error), error_message=str(error)
    )


def new_member_id() -> str:
    """An id like those of clients: a random UUID in 22 characters, not starting with a dash."""
    member_id = "-"
    while member_id.startswith("-"):
        member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    return member_id


def _check(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    may_lack_member_id = context.version < CLIENT_IDS_SINCE and epoch in {JOINING, STATIC_LEAVING}
    if _is_blank(request.member_id) and not may_lack_member_id:
        raise InvalidRequestError("MemberId can't be empty.")
    if _is_blank(request.group_id):
        raise InvalidRequestError("GroupId can't be empty.")
    if _is_blank(request.group_instance_id):
        raise InvalidRequestError("InstanceId can't be empty.")
    if _is_blank(request.rack_id):
        raise InvalidRequestError("RackId can't be empty.")
    if epoch == JOINING:
        _check_joining(request)
    elif epoch == STATIC_LEAVING and request.group_instance_id is None:
        raise InvalidRequestError("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING:
        raise InvalidRequestError("MemberEpoch is invalid.")


def _is_blank(name: str | None) -> bool:
    """Whether a name is present but blank."""
    return name is not None and not name.strip()


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
    if request.owned_partitions is None or request.owned_partitions:
        raise InvalidRequestError("TopicPartitions must be empty when (re-)joining.")
    # An empty subscription is valid; a missing one is not.
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequestError(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )


def _owned(owned: Iterable[TopicPartitions] | None) -> Partitions | None:
    if owned is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in owned if topic.partitions}


def _response(reconciled: Reconciled) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=reconciled.member_id,
        member_epoch=reconciled.member_epoch,
        heartbeat_interval_ms=reconciled.heartbeat_interval_ms,
        assignment=_assignment(reconciled.assignment),
    )


def _assignment(assigned: Partitions | None) -> Assignment | None:
    if assigned is None:
        return None
    return Assignment(
        [TopicPartitions(topic_id, sorted(numbers)) for topic_id, numbers in assigned.items()]
    )
