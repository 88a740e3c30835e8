"""Checks what readers of committed records got against the outcomes of transactions.

Invariants, of which the last reader sees the whole log after all transactions have ended:

* All records of a committed transaction are there once, at their acknowledged offsets and in the
  order of their sends; none of an aborted one, or of one whose commit was never requested.
* Of a transaction whose outcome is unknown, all records are there or none.
* Every reader gets what the last one gets, up to its own end, and no record before the request that
  commits it.
* The last stable offset never decreases.

Pure functions: events in, anomalies out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from chaos.anomalies import Anomaly, Name
from chaos.history import AnyEvent, Consumer, EndRead, Failure, Poll, Send, Transaction
from chaos.time_checks import Known, Response, outdated

_NEVER_NS = 1 << 62


@dataclass
class _Outcome:
    """What is known about a transaction."""

    commit_requested_ns: int = _NEVER_NS
    is_committed: bool = False
    is_aborted: bool = False
    values: list[tuple[str, str]] = field(default_factory=list)
    """The partition and value of each record, in the order of their sends."""

    @property
    def may_be_committed(self) -> bool:
        return self.commit_requested_ns < _NEVER_NS and not self.is_aborted


@dataclass
class _Reading:
    """What one reader got from one partition."""

    offsets: list[int] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)


class _Index:
    """The events of a history, by what they are about."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.outcomes: dict[str, _Outcome] = {}
        self.acknowledged: dict[str, int] = {}
        self.readings: defaultdict[tuple[str, str], _Reading] = defaultdict(_Reading)
        self.read_ns: dict[str, tuple[int, str]] = {}
        """When a value was read first, and by which reader."""
        self.ends: defaultdict[str, list[EndRead]] = defaultdict(list)
        self.final = ""
        self.failures: list[Failure] = []
        for event in events:
            self._add(event)

    def _add(self, event: AnyEvent) -> None:
        match event:
            case Consumer(is_final=True):
                self.final = event.process
            case Transaction():
                self._add_transaction(event)
            case Send(kind="invoke"):
                outcome = self.outcomes[transaction_of(event.value)]
                outcome.values.append((event.partition, event.value))
            case Send(kind="ok"):
                self.acknowledged[event.value] = event.offset
            case Poll():
                self._add_poll(event)
            case EndRead():
                self.ends[event.partition].append(event)
            case Failure():
                self.failures.append(event)

    def _add_transaction(self, event: Transaction) -> None:
        outcome = self.outcomes.setdefault(event.name, _Outcome())
        if event.verdict == "commit":
            if event.kind == "ok":
                outcome.is_committed = True
            else:
                outcome.commit_requested_ns = event.time_ns
        elif event.verdict == "abort":
            outcome.is_aborted = True

    def _add_poll(self, event: Poll) -> None:
        for partition, records in event.records.items():
            reading = self.readings[event.process, partition]
            for offset, value in records:
                reading.offsets.append(offset)
                reading.values[offset] = value
                seen = self.read_ns.get(value, (_NEVER_NS, ""))
                self.read_ns[value] = min(seen, (event.time_ns, event.process))

    def final_log(self, partition: str) -> dict[int, str]:
        reading = self.readings.get((self.final, partition))
        return reading.values if reading else {}

    @property
    def partitions(self) -> list[str]:
        sent = {place for each in self.outcomes.values() for place, _ in each.values}
        return sorted(sent | {partition for _, partition in self.readings})


def transaction_of(value: str) -> str:
    """The name of the transaction of a record."""
    return value.rpartition(":")[0]


def transaction_anomalies(events: Sequence[AnyEvent]) -> Iterator[Anomaly]:
    index = _Index(events)
    if not index.final:
        yield Anomaly(Name.UNSEEN, "all partitions", "no reader has read all of it at the end")
    for partition in index.partitions:
        yield from _content_anomalies(index, partition)
        yield from _order_anomalies(index, partition)
        yield from _stable_anomalies(index, partition)
    for (process, partition), reading in index.readings.items():
        yield from _reader_anomalies(index, process, partition, reading)
    yield from _outcome_anomalies(index)
    for failure in index.failures:
        yield Anomaly(Name.FAILURE, failure.process, failure.error)


def _outcome_anomalies(index: _Index) -> Iterator[Anomaly]:
    """Lost, split, aborted and early records."""
    for name, outcome in index.outcomes.items():
        logs = {place: set(index.final_log(place).values()) for place, _ in outcome.values}
        missing = [(place, value) for place, value in outcome.values if value not in logs[place]]
        if outcome.is_committed:
            for place, value in missing:
                yield Anomaly(Name.LOST, place, f"{value} is committed, and not in the log")
        elif outcome.may_be_committed and 0 < len(missing) < len(outcome.values):
            evidence = f"{name} has {len(outcome.values)} records, and without {missing}"
            yield Anomaly(Name.SPLIT, missing[0][0], evidence)
        for place, value in outcome.values:
            read_ns, process = index.read_ns.get(value, (_NEVER_NS, ""))
            if read_ns == _NEVER_NS:
                continue
            if not outcome.may_be_committed:
                reason = "was aborted" if outcome.is_aborted else "was never to be committed"
                yield Anomaly(Name.ABORTED, place, f"{process} read {value}, which {reason}")
            elif read_ns < outcome.commit_requested_ns:
                yield Anomaly(Name.EARLY, place, f"{process} read {value} before its commit")


def _content_anomalies(index: _Index, partition: str) -> Iterator[Anomaly]:
    """Records that were never sent, or are at another offset or at two."""
    sent = {
        value
        for outcome in index.outcomes.values()
        for place, value in outcome.values
        if place == partition
    }
    offsets: dict[str, int] = {}
    values: dict[int, str] = {}
    for (_, read), reading in index.readings.items():
        for offset, value in reading.values.items() if read == partition else ():
            if value not in sent:
                yield Anomaly(Name.NEVER_SENT, partition, f"{value} at {offset}")
            if (other := offsets.setdefault(value, offset)) != offset:
                yield Anomaly(Name.DUPLICATE, partition, f"{value} is at {other} and {offset}")
            if (stored := values.setdefault(offset, value)) != value:
                evidence = f"{stored} and {value} are at {offset}"
                yield Anomaly(Name.INCONSISTENT, partition, evidence)
            if (known := index.acknowledged.get(value, offset)) != offset:
                evidence = f"{value} was acknowledged at {known}, and read at {offset}"
                yield Anomaly(Name.INCONSISTENT, partition, evidence)


def _order_anomalies(index: _Index, partition: str) -> Iterator[Anomaly]:
    offsets = {value: offset for offset, value in index.final_log(partition).items()}
    for outcome in index.outcomes.values():
        last = -1
        for place, value in outcome.values:
            if place == partition and value in offsets:
                if offsets[value] < last:
                    evidence = f"{value} at {offsets[value]} comes before one sent earlier"
                    yield Anomaly(Name.DISORDER, partition, evidence)
                last = max(last, offsets[value])


def _reader_anomalies(
    index: _Index, process: str, partition: str, reading: _Reading
) -> Iterator[Anomaly]:
    """Readers begin at offset 0, and read each committed record once."""
    for before, after in zip(reading.offsets, reading.offsets[1:], strict=False):
        if after <= before:
            evidence = f"{process} went from {before} to {after}"
            yield Anomaly(Name.BACKWARDS, partition, evidence)
    end = max(reading.offsets)
    for offset, value in index.final_log(partition).items():
        if offset < end and offset not in reading.values:
            evidence = f"{process} read up to {end}, and not {value} at {offset}"
            yield Anomaly(Name.SKIP, partition, evidence)


def _stable_anomalies(index: _Index, partition: str) -> Iterator[Anomaly]:
    ends = index.ends[partition]
    known = (Known(end.time_ns, end.offset) for end in sorted(ends, key=lambda end: end.time_ns))
    responses = sorted(ends, key=lambda end: end.began_ns)
    for response, level in outdated(
        known, (Response(end.began_ns, end.offset, end) for end in responses)
    ):
        evidence = f"{response.level}, though {level} was known before"
        yield Anomaly(Name.UNSTABLE, partition, evidence)
