"""The cluster on one page."""

import msgspec

from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.cluster import Overview


async def show(room: Room, _: Call) -> msgspec.Raw:
    """The last look; before there was one, it is made."""
    if room.watch.overview is None:
        await room.watch.look()
    told = room.watch.overview_json
    assert told is not None, "a look leaves something to be seen"
    return msgspec.Raw(told)


ROUTES = (Route("GET", "/overview", show, gives=Overview),)
