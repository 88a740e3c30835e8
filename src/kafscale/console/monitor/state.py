"""What is remembered of one look after the other: who was there, how fast things go, the charts.

The law: a state change contains no `await`; all of it is bounded, whatever a cluster makes up.
"""

from typing import Final

from kafscale.admin.cluster import lag
from kafscale.admin.cluster.snapshot import ClusterLook
from kafscale.admin.topics.usage import stored_bytes, topic_figures
from kafscale.console.monitor.broker_presence import Presence, Seen
from kafscale.console.monitor.history import History
from kafscale.console.monitor.rates import Pace, Rates
from kafscale.console.monitor.s3_window import StoreWindow
from kafscale.console.schema.base import Series

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
LAG: Final = "lag"
DIRECTIONS: Final = (PRODUCE, FETCH)

TOPIC_LINES_MAX: Final = 2_000
BROKER_LINES_MAX: Final = 2_000
LAG_LINES_MAX: Final = 1_000
LAG_GROUPS_MAX: Final = 500
"""Of how many groups the lag is drawn."""


class Remembered:
    """A look, and what came before it."""

    def __init__(self, look: ClusterLook) -> None:
        self.look = look
        self.store = StoreWindow()
        self._presence = Presence()
        self._pace = Pace()
        self._cluster: History[str] = History(len(DIRECTIONS))
        self._lag: History[str] = History(1, of_levels=True)
        self._topics: History[tuple[str, str]] = History(TOPIC_LINES_MAX)
        self._brokers: History[tuple[int, str]] = History(BROKER_LINES_MAX)
        self._lags: History[tuple[str, str]] = History(LAG_LINES_MAX, of_levels=True)
        self._lag_groups: set[str] = set()
        self.stored_bytes = 0
        self.take(look)

    def take(self, look: ClusterLook) -> None:
        """Go on with the next look."""
        self.look = look
        self.brokers: list[Seen] = self._presence.take(look)
        self.rates: Rates = self._pace.take(look)
        self.lags = lag.of_look(look)
        self.topic_figures = topic_figures(look)
        if look.problem is None:
            self.stored_bytes = stored_bytes(look)
        self.store.take(look)
        self._draw()

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
        """One line a topic."""
        topics = sorted(topic for name, topic in self._lags if name == group)
        return [Series(name=topic, points=self._lags.points((group, topic))) for topic in topics]

    # --- drawing ------------------------------------------------------------------------------

    def _draw(self) -> None:
        at_ms, rates = self.look.at_ms, self.rates
        for history in (self._topics, self._brokers, self._lags):
            history.end_stale(at_ms)
        if self.look.problem is not None:
            return  # A gap says more than a zero: nobody knows what was going on.
        for name, value in (
            (PRODUCE, rates.total("produce_bytes")),
            (FETCH, rates.total("fetch_bytes")),
        ):
            if value is not None:
                self._cluster.put(name, at_ms, value, even_zero=True)
        self._lag.put(LAG, at_ms, lag.total(self.lags), even_zero=True)
        for broker_id, rate in rates.brokers.items():
            self._brokers.put((broker_id, PRODUCE), at_ms, rate.produce_bytes, even_zero=True)
            self._brokers.put((broker_id, FETCH), at_ms, rate.fetch_bytes, even_zero=True)
        self._draw_topics(at_ms)
        self._draw_lags(at_ms)

    def _draw_topics(self, at_ms: int) -> None:
        moving = self.rates.topics
        for name, rate in moving.items():
            self._topics.put((name, PRODUCE), at_ms, rate.produce)
            self._topics.put((name, FETCH), at_ms, rate.fetch)
        for name, direction in list(self._topics):
            if name not in moving and name in self.topic_figures:
                self._topics.put((name, direction), at_ms, 0.0)

    def _draw_lags(self, at_ms: int) -> None:
        self._lag_groups = {group for group, _ in self._lags}
        for group, topics in self.lags.items():
            if group not in self._lag_groups:
                if len(self._lag_groups) >= LAG_GROUPS_MAX:
                    continue
                self._lag_groups.add(group)
            for topic, behind in topics.items():
                self._lags.put((group, topic), at_ms, behind, even_zero=True)
