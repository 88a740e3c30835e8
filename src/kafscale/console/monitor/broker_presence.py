"""Which brokers were there lately, so that one that was killed is seen, not just missing. Pure.

A broker that leaves in good order takes itself off the list of the living at once. One that is
killed, or has lost the network, stays there until its lease ends: it is `unreachable` first, and
`gone` then, for `GONE_MS_MAX`. While no broker answers at all, those that were seen last are told
of as unreachable.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kafscale.admin.cluster.broker import UNREACHABLE, BrokerLook
from kafscale.admin.cluster.snapshot import ClusterLook

GONE: Final = "gone"
GONE_MS_MAX: Final = 10 * 60 * 1000
UNSEEN_MS_MAX: Final = 8_000
"""Who is missing after longer than this without a look may have been killed meanwhile."""
BROKERS_MAX: Final = 1_000


class Seen(msgspec.Struct, frozen=True):
    """A broker, and when it has answered last."""

    broker: BrokerLook
    at_ms: int


class Presence:
    """The brokers of a cluster, with those that are not there any more."""

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}
        self._looked_ms = 0

    @property
    def gone(self) -> list[int]:
        return [each for each, seen in self._seen.items() if seen.broker.state == GONE]

    def take(self, look: ClusterLook) -> list[Seen]:
        """All brokers that are to be told of, by their ids."""
        alive = {each.id: each for each in look.brokers}
        missing_ms = look.at_ms - self._looked_ms
        found = {each.id: seen for each in alive.values() for seen in [self._told(each, look)]}
        for broker_id, seen in self._seen.items():
            if broker_id not in alive:
                for kept in self._missing(seen, look, missing_ms):
                    found[broker_id] = kept
        self._seen = dict(sorted(found.items())[:BROKERS_MAX])
        if look.problem is None:
            self._looked_ms = look.at_ms
        return list(self._seen.values())

    def _told(self, broker: BrokerLook, look: ClusterLook) -> Seen:
        before = self._seen.get(broker.id)
        if broker.state != UNREACHABLE:
            return Seen(broker, look.at_ms)
        return Seen(broker, before.at_ms if before else look.at_ms)

    def _missing(self, seen: Seen, look: ClusterLook, missing_ms: int) -> Iterator[Seen]:
        """What is left of a broker that the cluster does not know any more: nothing, or itself."""
        broker = seen.broker
        if look.at_ms - seen.at_ms > GONE_MS_MAX:
            return
        if look.problem is not None:
            state = GONE if broker.state == GONE else UNREACHABLE
            yield _as(seen, state, look.problem)
        elif not broker.is_draining and (
            broker.state in {GONE, UNREACHABLE} or missing_ms > UNSEEN_MS_MAX
        ):
            yield _as(seen, GONE, "It was there lately, and is not any more.")


def _as(seen: Seen, state: str, why: str) -> Seen:
    broker = msgspec.structs.replace(
        seen.broker,
        state=state,
        problems={"cluster": why},
        is_controller=False,
        store_health=None,
        uptime_ms=None,
        partition_count=0 if state == GONE else seen.broker.partition_count,
        shard_count=0 if state == GONE else seen.broker.shard_count,
        moving_count=0,
        partitions=(),
        figures=None,
        figures_problem=None,
    )
    return Seen(broker, seen.at_ms)
