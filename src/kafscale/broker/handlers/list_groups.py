"""ListGroups: v0-5.

Behaviour:
* All groups, those without members and those that have nothing but offsets included.
* States and types are asked for in any case; one that there is none of matches nothing.
* Who may not DESCRIBE the cluster is told of the groups that it may DESCRIBE.

Version notes:
* v4+: only groups in some states, and the state of each.
* v5+: only groups of some types, and the type of each.
"""

from collections.abc import Iterable

from kafscale.broker.requests.context import RequestContext
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.model import GroupRecord, Kind
from kafscale.metadata.access.model import CLUSTER_NAME, ResourceType
from kafscale.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states, kinds = _lowered(request.state_filters), _lowered(request.type_filters)
    sees_all = context.can_describe(ResourceType.CLUSTER, CLUSTER_NAME)
    return ListGroupsResponse(
        groups=[
            _listed(record)
            for record in context.broker.groups.list()
            if (not states or record.state.lower() in states)
            and (not kinds or record.kind.value in kinds)
            and (sees_all or context.can_describe(ResourceType.GROUP, record.group_id))
        ]
    )


def _lowered(filters: Iterable[str]) -> set[str]:
    return {each.lower() for each in filters}


def _listed(record: GroupRecord) -> ListedGroup:
    is_consumer = record.kind is Kind.CONSUMER
    return ListedGroup(
        group_id=record.group_id,
        protocol_type=PROTOCOL_TYPE if is_consumer else record.protocol_type,
        group_state=record.state,
        group_type=record.kind.value,
    )
