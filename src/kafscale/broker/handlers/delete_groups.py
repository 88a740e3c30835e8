"""DeleteGroups: v0-2.

Behaviour:
* Groups are deleted concurrently, with their offsets; each succeeds or fails on its own. A group
  that is named twice is deleted once.
* A group with members is NON_EMPTY_GROUP, a missing one GROUP_ID_NOT_FOUND.
* Requires DELETE on each group, else GROUP_AUTHORIZATION_FAILED.

Version notes: all versions behave alike.
"""

import asyncio

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import topic_admission
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.delete_groups import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    topic_admission.check_admin_allowed(context.broker)
    group_ids = dict.fromkeys(request.group_ids)
    groups = await asyncio.gather(*(_delete(context, group_id) for group_id in group_ids))
    return DeleteGroupsResponse(groups=groups)


def error_response(
    _context: RequestContext, request: DeleteGroupsRequest, error: KafscaleError
) -> DeleteGroupsResponse:
    """The same error for every group."""
    return DeleteGroupsResponse(
        groups=[DeletedGroup(group_id, error.code) for group_id in request.group_ids]
    )


async def _delete(context: RequestContext, group_id: str) -> DeletedGroup:
    try:
        context.require(Operation.DELETE, ResourceType.GROUP, group_id)
        await context.broker.groups.delete(group_id)
    except KafscaleError as error:
        return DeletedGroup(group_id, error.code)
    context.broker.audit.changed(context, "group deleted", group=group_id)
    return DeletedGroup(group_id)
