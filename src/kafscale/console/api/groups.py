"""Consumer groups: list, describe, reset and delete.

Lists come from the last poll of the monitor; one group is described by its coordinator. A reset is
only planned unless `execute` is set.
"""

from typing import Final

import msgspec

from kafscale.admin.groups import groups
from kafscale.admin.groups.reset import ResetTarget, TargetKind
from kafscale.admin.groups.reset import reset as reset_group
from kafscale.admin.topics.describe import sum_known
from kafscale.console.api.route import ApiContext, ApiRequest, Route, check_confirmation, page_items
from kafscale.console.schema.groups import (
    DeleteGroup,
    GroupDetail,
    GroupPage,
    GroupQuery,
    Reset,
    ResetPlan,
    ResetTo,
)
from kafscale.errors import InvalidRequestError

_NON_NEGATIVE: Final = frozenset({TargetKind.OFFSET, TargetKind.TIME})
"""Targets whose number cannot be negative."""


async def list_groups(context: ApiContext, request: ApiRequest) -> GroupPage:
    query: GroupQuery = request.query
    search, state = query.search.lower(), query.state.lower()
    matching = [
        group
        for name, group in sorted(context.monitor.groups.items())
        if search in name.lower() and state in {"", group.state.lower()}
    ]
    return GroupPage(
        as_of_ms=context.monitor.as_of_ms,
        total=len(matching),
        page=query.page,
        size=query.size,
        items=page_items(matching, query.page, query.size),
    )


async def describe(context: ApiContext, request: ApiRequest) -> GroupDetail:
    name = request.path["name"]
    async with context.connections.client() as client:
        (group,) = await groups.describe(client, [name])
    lag = sum_known(row.lag for row in group.offsets)
    return msgspec.convert(
        msgspec.to_builtins(group) | {"lag": lag, "lagHistory": context.monitor.lag_history(name)},
        GroupDetail,
    )


async def reset(context: ApiContext, request: ApiRequest) -> ResetPlan:
    body: Reset = request.body
    if body.topics is not None and not body.topics:
        raise InvalidRequestError("topics is empty: name the topics to reset, or omit it for all")
    target = _target(body.to)
    async with context.connections.client() as client:
        rows = await reset_group(
            client, request.path["name"], body.topics, target, execute=body.execute
        )
    if body.execute:
        await context.monitor.refresh()
    return ResetPlan(executed=body.execute, rows=rows)


async def delete(context: ApiContext, request: ApiRequest) -> None:
    name, body = request.path["name"], request.body
    check_confirmation(f"group {name}", name, body.confirm)
    async with context.connections.client() as client:
        await groups.delete_one(client, name)
    await context.monitor.refresh()


def _target(to: ResetTo) -> ResetTarget:
    kind = TargetKind(to.kind)
    if kind in _NON_NEGATIVE and to.number < 0:
        raise InvalidRequestError(f"{kind} {to.number} is negative")
    return ResetTarget(kind, to.number)


ROUTES: Final = (
    Route("GET", "/groups", list_groups, query=GroupQuery, response=GroupPage),
    Route("GET", "/groups/{name:path}", describe, response=GroupDetail),
    Route("POST", "/groups/{name:path}/reset", reset, body=Reset, response=ResetPlan),
    Route("DELETE", "/groups/{name:path}", delete, body=DeleteGroup),
)
