"""Tracks which brokers were live recently, so that a killed broker is shown as gone. Pure.

A broker that shuts down deregisters at once. A broker that was killed or has lost the network stays
registered until its lease ends: it is `unreachable` first, then `gone` for `GONE_MS_MAX`. While no
broker responds at all, the last known brokers are shown as unreachable.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kafscale.admin.cluster.broker import UNREACHABLE, BrokerStatus
from kafscale.admin.cluster.snapshot import ClusterSnapshot

GONE: Final = "gone"
GONE_MS_MAX: Final = 10 * 60 * 1000
POLL_GAP_MS_MAX: Final = 8_000
"""After a longer gap between polls, a missing broker may have been killed in the gap."""
BROKERS_MAX: Final = 1_000


class ObservedBroker(msgspec.Struct, frozen=True):
    """A broker, and when it last responded."""

    broker: BrokerStatus
    at_ms: int


class BrokerPresence:
    """The brokers of a cluster, including those that have left recently."""

    def __init__(self) -> None:
        self._observed: dict[int, ObservedBroker] = {}
        self._last_success_ms = 0

    @property
    def gone(self) -> list[int]:
        return [each for each, observed in self._observed.items() if observed.broker.state == GONE]

    def update(self, snapshot: ClusterSnapshot) -> list[ObservedBroker]:
        """All brokers to show, by id."""
        live = {each.id: each for each in snapshot.brokers}
        since_last_success_ms = snapshot.at_ms - self._last_success_ms
        brokers = {
            each.id: observed
            for each in live.values()
            for observed in [self._observe(each, snapshot)]
        }
        for broker_id, observed in self._observed.items():
            if broker_id not in live:
                for remaining in self._missing(observed, snapshot, since_last_success_ms):
                    brokers[broker_id] = remaining
        self._observed = dict(sorted(brokers.items())[:BROKERS_MAX])
        if snapshot.problem is None:
            self._last_success_ms = snapshot.at_ms
        return list(self._observed.values())

    def _observe(self, broker: BrokerStatus, snapshot: ClusterSnapshot) -> ObservedBroker:
        before = self._observed.get(broker.id)
        if broker.state != UNREACHABLE:
            return ObservedBroker(broker, snapshot.at_ms)
        return ObservedBroker(broker, before.at_ms if before else snapshot.at_ms)

    def _missing(
        self, observed: ObservedBroker, snapshot: ClusterSnapshot, since_last_success_ms: int
    ) -> Iterator[ObservedBroker]:
        """A broker that is not registered any more; nothing if it left in an orderly way."""
        broker = observed.broker
        if snapshot.at_ms - observed.at_ms > GONE_MS_MAX:
            return
        if snapshot.problem is not None:
            state = GONE if broker.state == GONE else UNREACHABLE
            yield _with_state(observed, state, snapshot.problem)
        elif not broker.is_draining and (
            broker.state in {GONE, UNREACHABLE} or since_last_success_ms > POLL_GAP_MS_MAX
        ):
            yield _with_state(observed, GONE, "It left without being drained.")


def _with_state(observed: ObservedBroker, state: str, problem: str) -> ObservedBroker:
    broker = msgspec.structs.replace(
        observed.broker,
        state=state,
        problems={"cluster": problem},
        is_controller=False,
        store_health=None,
        uptime_ms=None,
        partition_count=0 if state == GONE else observed.broker.partition_count,
        shard_count=0 if state == GONE else observed.broker.shard_count,
        moving_count=0,
        partitions=(),
        metrics=None,
        metrics_problem=None,
    )
    return ObservedBroker(broker, observed.at_ms)
