"""ListGroups: v0-5.

Behaviour:
* All groups, including those without members and those with offsets only.
* State and type filters ignore case; an unknown one matches nothing.
* A client that may not DESCRIBE the cluster gets the groups that it may DESCRIBE.

Version notes:
* v4+: a filter by state, and the state of each group.
* v5+: a filter by type, and the type of each group.
"""

from collections.abc import Iterable

from kafscale.broker.requests.context import RequestContext
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.model import GroupRecord, GroupType
from kafscale.metadata.access.model import CLUSTER_NAME, ResourceType
from kafscale.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states, kinds = _lower(request.state_filters), _lower(request.type_filters)
    can_describe_all = context.can_describe(ResourceType.CLUSTER, CLUSTER_NAME)
    return ListGroupsResponse(
        groups=[
            _listed(record)
            for record in context.broker.groups.list()
            if (not states or record.state.lower() in states)
            and (not kinds or record.group_type.value in kinds)
            and (can_describe_all or context.can_describe(ResourceType.GROUP, record.group_id))
        ]
    )


def _lower(filters: Iterable[str]) -> set[str]:
    return {each.lower() for each in filters}


def _listed(record: GroupRecord) -> ListedGroup:
    is_consumer = record.group_type is GroupType.CONSUMER
    return ListedGroup(
        group_id=record.group_id,
        protocol_type=PROTOCOL_TYPE if is_consumer else record.protocol_type,
        group_state=record.state,
        group_type=record.group_type.value,
    )
