"""What brokers measure, as they send it: the newest sample of each.

The law: a sample never takes the place of a newer one; of brokers that send none any more the one
that has been silent for longest is forgotten first.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.control.messages import MetricsSample
from kafscale.errors import InvalidRequestError

BROKERS_MAX: Final = 1_000
VALUES_MAX: Final = 10_000
"""How many gauges and counters a sample may have."""


class Samples:
    """The newest sample of each broker, those that came last at the end."""

    def __init__(self, *, brokers_max: int = BROKERS_MAX, values_max: int = VALUES_MAX) -> None:
        self._brokers_max = brokers_max
        self._values_max = values_max
        self._newest: dict[str, MetricsSample] = {}

    def take(self, sample: MetricsSample) -> None:
        if not sample.broker_id:
            raise InvalidRequestError("a sample says which broker it is of")
        if len(sample.gauges) + len(sample.counters) > self._values_max:
            raise InvalidRequestError(f"a sample has {self._values_max} values at the most")
        before = self._newest.get(sample.broker_id)
        if before is not None and before.timestamp_ms > sample.timestamp_ms:
            return
        self._newest.pop(sample.broker_id, None)
        self._newest[sample.broker_id] = sample
        if len(self._newest) > self._brokers_max:
            del self._newest[next(iter(self._newest))]

    def newest(self) -> Iterable[MetricsSample]:
        return self._newest.values()
