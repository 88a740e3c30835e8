"""Checks a history, in the manner of Jepsen's Kafka workload.

A pure function: events in, anomalies out. `anomalies` explains each kind.
"""

from collections.abc import Iterable, Sequence

from chaos.anomalies import Anomaly
from chaos.compaction_checks import compaction_anomalies
from chaos.history import AnyEvent
from chaos.history_index import HistoryIndex
from chaos.log_checks import log_anomalies
from chaos.reader_checks import reader_anomalies
from chaos.time_checks import time_anomalies
from chaos.transaction_checks import transaction_anomalies


def check(events: Iterable[AnyEvent]) -> list[Anomaly]:
    """All anomalies; the events of each process must be in order."""
    index = HistoryIndex(events)
    return [*log_anomalies(index), *reader_anomalies(index), *time_anomalies(index)]


def check_compacted(events: Sequence[AnyEvent]) -> list[Anomaly]:
    """The same for a compacted topic, whose values are those of `keyed_value`."""
    index = HistoryIndex(events)
    return [*compaction_anomalies(index, events), *time_anomalies(index)]


def check_transactions(events: Sequence[AnyEvent]) -> list[Anomaly]:
    """The same for a topic that is written in transactions, and read committed."""
    return list(transaction_anomalies(events))
