"""Consumer groups: found, looked at, moved and deleted.

The law: a list is told from the last look of the watch, one group by its coordinator. A reset is
only a plan unless it is to be executed.
"""

from typing import Final

import msgspec

from kafscale.admin.groups import groups
from kafscale.admin.groups.reset import reset as reset_group
from kafscale.admin.groups.reset_aim import Aim, Kind
from kafscale.admin.topics.describe import total
from kafscale.console.api.confirming import confirm
from kafscale.console.api.pagination import cut
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
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

_COUNTED: Final = frozenset({Kind.OFFSET, Kind.TIME})
"""What a number that is not negative says."""


async def list_groups(room: Room, call: Call) -> GroupPage:
    query: GroupQuery = call.query
    wanted, state = query.search.lower(), query.state.lower()
    found = [
        group
        for name, group in sorted(room.watch.groups.items())
        if wanted in name.lower() and state in {"", group.state.lower()}
    ]
    return GroupPage(
        as_of_ms=room.watch.as_of_ms,
        total=len(found),
        page=query.page,
        size=query.size,
        items=cut(found, query.page, query.size),
    )


async def describe(room: Room, call: Call) -> GroupDetail:
    name = call.path["name"]
    async with room.reach.client() as client:
        (found,) = await groups.describe(client, [name])
    return msgspec.convert(
        found
        | {
            "lag": total(row["lag"] for row in found["offsets"]),
            "lagHistory": room.watch.lag_history(name),
        },
        GroupDetail,
    )


async def reset(room: Room, call: Call) -> ResetPlan:
    asked: Reset = call.body
    if asked.topics is not None and not asked.topics:
        raise InvalidRequestError("no topic is to be reset; name some, or leave them out for all")
    aim = _aim(asked.to)
    async with room.reach.client() as client:
        rows = await reset_group(
            client, call.path["name"], asked.topics, aim, execute=asked.execute
        )
    if asked.execute:
        await room.watch.look()
    return msgspec.convert({"executed": asked.execute, "rows": rows}, ResetPlan)


async def delete(room: Room, call: Call) -> None:
    name, asked = call.path["name"], call.body
    confirm(f"group {name}", name, asked.confirm)
    async with room.reach.client() as client:
        await groups.delete_one(client, name)
    await room.watch.look()


def _aim(to: ResetTo) -> Aim:
    kind = Kind(to.kind)
    if kind in _COUNTED and to.number < 0:
        raise InvalidRequestError(f"{kind} {to.number} is before the beginning; say 0 or more")
    return Aim(kind, to.number)


ROUTES: Final = (
    Route("GET", "/groups", list_groups, query=GroupQuery, gives=GroupPage),
    Route("GET", "/groups/{name:path}", describe, gives=GroupDetail),
    Route("POST", "/groups/{name:path}/reset", reset, takes=Reset, gives=ResetPlan),
    Route("DELETE", "/groups/{name:path}", delete, takes=DeleteGroup),
)
