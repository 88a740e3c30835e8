"""Judges a history, in the manner of Jepsen's Kafka workload: best there is nothing to say.

Pure: it is told everything, and says what cannot be true of a log that keeps its promises. What
each name means is said in `anomalies`.
"""

from collections.abc import Iterable

from chaos.anomalies import Anomaly
from chaos.history import AnyEvent
from chaos.log_checks import log_anomalies
from chaos.reader_checks import reader_anomalies
from chaos.story import Story
from chaos.time_checks import time_anomalies


def check(events: Iterable[AnyEvent]) -> list[Anomaly]:
    """Everything that is wrong; the events of each process must be in their order."""
    story = Story(events)
    return [*log_anomalies(story), *reader_anomalies(story), *time_anomalies(story)]
