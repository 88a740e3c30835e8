"""The state of the monitor: the last snapshot, broker presence, rates and chart history.

Invariants: an update contains no `await`, and all state is bounded, whatever a cluster reports.
"""

from typing import Final

from kafscale.admin.cluster import lag
from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.admin.topics.usage import dirty_ratios, stored_bytes, topic_usage
from kafscale.console.monitor.broker_presence import BrokerPresence, ObservedBroker
from kafscale.console.monitor.history import History
from kafscale.console.monitor.rates import RateMeter, Rates
from kafscale.console.monitor.s3_window import StoreWindow
from kafscale.console.schema.base import Series

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
LAG: Final = "lag"
DIRECTIONS: Final = (PRODUCE, FETCH)

TOPIC_SERIES_MAX: Final = 2_000
BROKER_SERIES_MAX: Final = 2_000
LAG_SERIES_MAX: Final = 1_000
LAG_GROUPS_MAX: Final = 500
"""The number of groups with a lag history."""


class MonitorState:
    """The last snapshot and what is derived from earlier ones."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self.store = StoreWindow()
        self._presence = BrokerPresence()
        self._rate_meter = RateMeter()
        self._cluster: History[str] = History(len(DIRECTIONS))
        self._lag: History[str] = History(1, of_gauges=True)
        self._topics: History[tuple[str, str]] = History(TOPIC_SERIES_MAX)
        self._brokers: History[tuple[int, str]] = History(BROKER_SERIES_MAX)
        self._lags: History[tuple[str, str]] = History(LAG_SERIES_MAX, of_gauges=True)
        self._lag_groups: set[str] = set()
        self.stored_bytes = 0
        self.update(snapshot)

    def update(self, snapshot: ClusterSnapshot) -> None:
        """Process the next snapshot."""
        self.snapshot = snapshot
        self.brokers: list[ObservedBroker] = self._presence.update(snapshot)
        self.rates: Rates = self._rate_meter.update(snapshot)
        self.lags = lag.from_snapshot(snapshot)
        self.topic_usage = topic_usage(snapshot)
        self.dirty_ratios = dirty_ratios(snapshot)
        if snapshot.problem is None:
            self.stored_bytes = stored_bytes(snapshot)
        self.store.update(snapshot)
        self._record()

    @property
    def gone(self) -> list[int]:
        return self._presence.gone

    def throughput(self) -> list[Series]:
        return [Series(name=name, points=self._cluster.points(name)) for name in DIRECTIONS]

    def lag(self) -> list[Series]:
        return [Series(name=LAG, points=self._lag.points(LAG))]

    def topic_throughput(self, name: str) -> list[Series]:
        return [Series(name=each, points=self._topics.points((name, each))) for each in DIRECTIONS]

    def broker_throughput(self, broker_id: int) -> list[Series]:
        return [
            Series(name=each, points=self._brokers.points((broker_id, each))) for each in DIRECTIONS
        ]

    def lag_history(self, group: str) -> list[Series]:
        """One series per topic."""
        topics = sorted(topic for name, topic in self._lags if name == group)
        return [Series(name=topic, points=self._lags.points((group, topic))) for topic in topics]

    # --- recording ------------------------------------------------------------------------------

    def _record(self) -> None:
        at_ms, rates = self.snapshot.at_ms, self.rates
        for history in (self._topics, self._brokers, self._lags):
            history.drop_stale(at_ms)
        if self.snapshot.problem is not None:
            return  # Leave a gap: the rates are unknown, not zero.
        for name, value in (
            (PRODUCE, rates.total("produce_bytes")),
            (FETCH, rates.total("fetch_bytes")),
        ):
            if value is not None:
                self._cluster.add(name, at_ms, value, keep_zero=True)
        self._lag.add(LAG, at_ms, lag.total(self.lags), keep_zero=True)
        for broker_id, rate in rates.brokers.items():
            self._brokers.add((broker_id, PRODUCE), at_ms, rate.produce_bytes, keep_zero=True)
            self._brokers.add((broker_id, FETCH), at_ms, rate.fetch_bytes, keep_zero=True)
        self._record_topics(at_ms)
        self._record_lags(at_ms)

    def _record_topics(self, at_ms: int) -> None:
        active = self.rates.topics
        for name, rate in active.items():
            self._topics.add((name, PRODUCE), at_ms, rate.produce)
            self._topics.add((name, FETCH), at_ms, rate.fetch)
        for name, direction in list(self._topics):
            if name not in active and name in self.topic_usage:
                self._topics.add((name, direction), at_ms, 0.0)

    def _record_lags(self, at_ms: int) -> None:
        self._lag_groups = {group for group, _ in self._lags}
        for group, topics in self.lags.items():
            if group not in self._lag_groups:
                if len(self._lag_groups) >= LAG_GROUPS_MAX:
                    continue
                self._lag_groups.add(group)
            for topic, topic_lag in topics.items():
                self._lags.add((group, topic), at_ms, topic_lag, keep_zero=True)
