"""The segments of a partition, as they lie in the bucket, and what is in the WAL only."""

from typing import Final

import msgspec

from kafscale.admin.topics import describe, segments, wal_tail
from kafscale.console.api.pagination import first_of
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.topics import SegmentPage, SegmentQuery


async def list_segments(room: Room, call: Call) -> SegmentPage:
    name, query = call.path["name"], call.query
    first = first_of(query.page, query.size)
    topic = await describe.look(room.reach, name)
    partition = describe.find_partition(topic, query.partition)
    namespace = room.reach.namespace
    async with room.reach.objects() as store:
        # The tail first: what becomes a segment meanwhile is then told twice rather than never.
        tail = await wal_tail.wal_tail(store, namespace, bytes.fromhex(topic["topicId"]), partition)
        found = await segments.inventory(
            store, namespace, name, query.partition, first=first, count=query.size
        )
    return msgspec.convert(
        found | {"page": query.page, "size": query.size, "wal": tail}, SegmentPage
    )


ROUTES: Final = (
    Route("GET", "/topics/{name}/segments", list_segments, query=SegmentQuery, gives=SegmentPage),
)
