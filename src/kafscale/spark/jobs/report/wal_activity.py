"""How busy the brokers are, as the names and times of their WAL objects show.

Objects of a stream are numbered without gaps, so that the first and the last that are still there
tell how many were written since the first, those included that have been trimmed away in between.
"""

from collections import defaultdict
from typing import Final

import msgspec

from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore

DAY_MS: Final = 86_400_000
SPAN_MS_MIN: Final = 60_000
"""Over less than that, nothing is said about a day."""


class WalActivity(msgspec.Struct, frozen=True):
    """What brokers have done lately."""

    brokers: int
    """How many have written during the last day."""
    puts_per_day: float | None
    """How many objects they write a day; None if too little is to be seen."""


async def activity(store: ObjectStore, namespace: str, now_ms: int) -> WalActivity:
    """What a listing of the WAL shows."""
    written: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    async for chunk in store.list(object_keys.wal_root(namespace)):
        for item in chunk:
            place = object_keys.parse_wal(namespace, item.key)
            if place is not None and now_ms - item.modified_ms < DAY_MS:
                written[place.broker_id, place.epoch].append((place.sequence, item.modified_ms))
    if not written:
        return WalActivity(0, None)
    span_ms = now_ms - min(modified_ms for items in written.values() for _, modified_ms in items)
    puts = sum(max(items)[0] - min(items)[0] for items in written.values())
    return WalActivity(
        brokers=len({broker_id for broker_id, _ in written}),
        puts_per_day=puts * DAY_MS / span_ms if span_ms >= SPAN_MS_MIN else None,
    )
