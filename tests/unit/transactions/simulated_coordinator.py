"""A coordinator with a store, logs of partitions and clients, in which everything may be lost.

`Coordinator` executes the effects of one transaction as its docstring demands, and fails tests by
assertions: a rejected event changes nothing, and a restored transaction continues like the one that
was never lost. A `Log` is a partition leader that knows producer epochs. A `Client` is a producer
that repeats every request until it has the response, and writes records that have the number of
their transaction. `Outcomes` has what clients know of each number.
"""

import itertools
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any, NamedTuple

import msgspec

from kafscale.errors import ConcurrentTransactionsError, KafscaleError
from kafscale.transactions.effects import (
    Effect,
    PartitionsAdded,
    ProducerInitialized,
    Reply,
    Response,
    Save,
    TransactionEnded,
    WriteMarkers,
)
from kafscale.transactions.events import (
    AddPartitions,
    EndTransaction,
    Event,
    InitProducer,
    MarkersWritten,
    Tick,
)
from kafscale.transactions.model import NO_EPOCH, NO_PRODUCER_ID, TransactionVersion
from kafscale.transactions.transaction import Transaction

TIMEOUT_MS = 1_000
PARTITION_COUNT = 3

Answer = Response | KafscaleError


class Marker(NamedTuple):
    """A marker on its way to a partition."""

    effect: WriteMarkers
    partition: int
    coordinator_epoch: int


class Log:
    """A partition: the records of each transaction, and its outcome if it has a marker."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, set[int]] = {}
        """Transaction numbers by producer id."""
        self.outcomes: dict[int, bool] = {}
        """Whether a transaction number is committed."""

    def append(self, producer_id: int, epoch: int, number: int) -> bool:
        if epoch < self.epochs.get(producer_id, NO_EPOCH):
            return False
        self.epochs[producer_id] = epoch
        self.open.setdefault(producer_id, set()).add(number)
        return True

    def write_marker(self, marker: Marker) -> None:
        producer_id, epoch = marker.effect.producer_id, marker.effect.epoch
        if epoch < self.epochs.get(producer_id, NO_EPOCH):
            return
        if marker.coordinator_epoch < self.coordinator_epochs.get(producer_id, 0):
            return
        self.epochs[producer_id] = epoch
        self.coordinator_epochs[producer_id] = marker.coordinator_epoch
        for number in self.open.pop(producer_id, set()):
            assert number not in self.outcomes, "a transaction has one outcome"
            self.outcomes[number] = marker.effect.is_commit


class Coordinator:
    def __init__(self, epoch: int) -> None:
        self.now_ms = 0
        self.epoch = 0
        self.logs = [Log() for _ in range(PARTITION_COUNT)]
        self.transaction = Transaction.new("billing", self.now_ms)
        self.stored = self.transaction.record()
        self.markers: list[Marker] = []
        """Sent to partitions, which have not confirmed them."""
        self._waiting: list[Effect] = []
        """Effects that wait for the store."""
        self._fresh = itertools.count(100)
        self._tokens = itertools.count(1)
        self._callbacks: dict[int, Callable[[Answer], None]] = {}
        self._skip_epochs(epoch)

    def _skip_epochs(self, epoch: int) -> None:
        """Begin with a producer id whose epoch is this one."""
        self.send(InitProducer, lambda _answer: None, timeout_ms=TIMEOUT_MS)
        record = msgspec.structs.replace(self.transaction.record(), epoch=epoch)
        self.transaction = Transaction.restore(record)
        self.flush()

    # --- events ---------------------------------------------------------------------------------

    def send(self, kind: Any, callback: Callable[[Answer], None], **fields: Any) -> int:
        """Handle a request; the callback gets the response, unless that is lost."""
        token = next(self._tokens)
        self._callbacks[token] = callback
        if kind in {InitProducer, EndTransaction} and self.transaction.needs_producer_id:
            fields["fresh_producer_id"] = next(self._fresh)
        self.handle(kind(reply_token=token, **fields))
        return token

    def lose_reply(self, token: int) -> None:
        self._callbacks.pop(token, None)

    def handle(self, event: Event) -> None:
        before = self.transaction.record()
        restored = Transaction.restore(before)
        effects = self.transaction.handle(event, self.now_ms)
        assert restored.handle(event, self.now_ms) == effects or has_errors(effects)
        assert restored.record() == self.transaction.record()
        if has_errors(effects) and not any(isinstance(it, Save) for it in effects):
            assert self.transaction.record() is before
        after = self.transaction.record()
        assert after.producer_id != before.producer_id or after.epoch >= before.epoch
        self._execute(effects)

    def _execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            is_ready = isinstance(effect, Reply) and not effect.is_durable
            if isinstance(effect, Save) and effect.is_lazy:
                continue
            if is_ready or not (self._waiting or isinstance(effect, Save)):
                self._release(effect)
            else:
                self._waiting.append(effect)

    def _release(self, effect: Effect) -> None:
        match effect:
            case Reply(token, response):
                if callback := self._callbacks.pop(token, None):
                    callback(response)
            case WriteMarkers(partitions=partitions):
                self.markers += [Marker(effect, it, self.epoch) for _, it in sorted(partitions)]

    # --- the store, the partitions, time --------------------------------------------------------

    def flush(self) -> None:
        """Store the record, with or without a need."""
        self.stored = self.transaction.record()
        waiting, self._waiting = self._waiting, []
        for effect in waiting:
            self._release(effect)

    def crash(self) -> None:
        """Another coordinator continues with what is stored; markers on the way still arrive."""
        self._waiting.clear()
        self._callbacks.clear()
        self.epoch += 1
        self.transaction = Transaction.restore(self.stored)
        self._execute(self.transaction.resume(self.now_ms))

    def deliver(self, index: int, *, is_confirmed: bool) -> None:
        """A partition writes a marker; it is sent again unless that is confirmed."""
        if not self.markers:
            return
        marker = self.markers[index % len(self.markers)]
        self.logs[marker.partition].write_marker(marker)
        if not is_confirmed:
            return
        self.markers.remove(marker)
        if marker.coordinator_epoch == self.epoch:
            self.handle(
                MarkersWritten(
                    producer_id=marker.effect.producer_id,
                    epoch=marker.effect.epoch,
                    partitions=frozenset({("orders", marker.partition)}),
                )
            )

    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.handle(Tick())

    def settle(self) -> None:
        """Everything that is pending happens."""
        self.flush()
        while self.markers:
            self.deliver(0, is_confirmed=True)
            self.flush()


def has_errors(effects: list[Effect]) -> bool:
    """Errors are not equal to each other, and neither are effects with them."""
    return any(isinstance(it, Reply) and isinstance(it.response, KafscaleError) for it in effects)


class Phase(Enum):
    STARTING = auto()
    READY = auto()
    ADDING = auto()
    ENDING = auto()
    FAILED = auto()


class Outcomes:
    """What clients know of the transactions, by number."""

    def __init__(self) -> None:
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.may_commit: set[int] = set()
        """Those that a client wants to commit."""
        self.written: dict[int, set[int]] = {}
        """The partitions that each has records in."""
        self.producers: set[tuple[int, int]] = set()
        """Producer ids and epochs that InitProducerId has given to a client."""


class Client:
    def __init__(
        self,
        coordinator: Coordinator,
        outcomes: Outcomes,
        numbers: Iterator[int],
        version: TransactionVersion,
    ) -> None:
        self._coordinator = coordinator
        self._outcomes = outcomes
        self._numbers = numbers
        self._version = version
        self.phase = Phase.STARTING
        self._producer = (NO_PRODUCER_ID, NO_EPOCH)
        self._number = next(numbers)
        self._added: set[int] = set()
        self._adding = 0
        self._is_commit = False
        self._token = 0

    def act(self, choice: int) -> None:
        """Send the request that is pending, again, or go on; `choice` says how."""
        match self.phase:
            case Phase.STARTING:
                self._init()
            case Phase.ADDING:
                self._add()
            case Phase.ENDING:
                self._end()
            case Phase.READY if choice % 3 == 0 and self._can_end():
                self.phase, self._is_commit = Phase.ENDING, choice % 4 < 3
                if self._is_commit:
                    self._outcomes.may_commit.add(self._number)
                self._end()
            case Phase.READY if choice % 3 == 1 and self._added:
                self._write(sorted(self._added)[choice % len(self._added)])
            case Phase.READY:
                self.phase, self._adding = Phase.ADDING, choice % PARTITION_COUNT
                self._add()
            case Phase.FAILED:
                self._restart()

    def _can_end(self) -> bool:
        """Only with version 2 may a client abort what it has not begun; it does not here."""
        return bool(self._added)

    def _restart(self) -> None:
        """As a new process: it knows nothing of the transaction before."""
        self.phase, self._number, self._added = Phase.STARTING, next(self._numbers), set()
        self._init()

    def _write(self, partition: int) -> None:
        producer_id, epoch = self._producer
        if self._coordinator.logs[partition].append(producer_id, epoch, self._number):
            self._outcomes.written.setdefault(self._number, set()).add(partition)
        else:
            self.phase = Phase.FAILED

    # --- requests -------------------------------------------------------------------------------

    def _send(self, kind: Any, callback: Callable[[Any], None], **fields: Any) -> None:
        self._coordinator.lose_reply(self._token)

        def on_answer(answer: Answer) -> None:
            if isinstance(answer, ConcurrentTransactionsError):
                return  # It is repeated.
            if isinstance(answer, KafscaleError):
                self.phase = Phase.FAILED
            else:
                callback(answer)

        self._token = self._coordinator.send(kind, on_answer, **fields)

    def _init(self) -> None:
        def on_initialized(answer: ProducerInitialized) -> None:
            self._producer = (answer.producer_id, answer.epoch)
            assert self._producer not in self._outcomes.producers
            self._outcomes.producers.add(self._producer)
            self.phase = Phase.READY

        self._send(InitProducer, on_initialized, timeout_ms=TIMEOUT_MS)

    def _add(self) -> None:
        def on_added(_answer: PartitionsAdded) -> None:
            self._added.add(self._adding)
            self.phase = Phase.READY

        self._send(
            AddPartitions,
            on_added,
            producer_id=self._producer[0],
            epoch=self._producer[1],
            partitions=frozenset({("orders", self._adding)}),
            version=self._version,
        )

    def _end(self) -> None:
        def on_ended(answer: TransactionEnded) -> None:
            known = self._outcomes.committed if self._is_commit else self._outcomes.aborted
            known.add(self._number)
            if self._version.bumps_epoch:
                self._producer = (answer.producer_id, answer.epoch)
            self.phase, self._number, self._added = Phase.READY, next(self._numbers), set()

        self._send(
            EndTransaction,
            on_ended,
            producer_id=self._producer[0],
            epoch=self._producer[1],
            is_commit=self._is_commit,
            version=self._version,
        )
