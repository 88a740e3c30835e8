"""Producers that write to several partitions in transactions, and readers of committed records.

Each producer keeps its transactional id over its sessions. Some transactions are aborted, and some
sessions end within a transaction, which the next session, or the timeout of the transaction, has to
abort. Readers also report the last stable offset.
"""

import functools
import random
import time
from collections.abc import Callable

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from chaos import history
from chaos.clients.librdkafka_producer import COMMON
from chaos.clients.librdkafka_reader import Reader, consumer, retry
from chaos.clients.options import ClientOptions, StopSignal, encode_value
from chaos.history import EndRead, Failure, Journal, Kind, Send, Transaction, Verdict, now_ns

TIMEOUT_MS = 8000
"""The time after which brokers abort a transaction."""
SESSION_S = (8, 40)
RECORDS_MAX = 8
PAUSE_S = 0.05
ABORT_SHARE = 0.3
LEAVE_SHARE = 0.3
"""The share of sessions that end within a transaction."""
CALL_S = 10
OUTCOME_S_MAX = 60
STABLE_PAUSE_S = 0.5
FINAL_S_MAX = 120
SETTINGS = {
    "transaction.timeout.ms": TIMEOUT_MS,
    # See `e2e/clients/python/transform.py`.
    "metadata.recovery.strategy": "none",
}


class SessionOverError(Exception):
    """The producer can do nothing more, or nothing more in time."""


class TransactionalSession:
    """One producer, from its creation until it is lost or given up."""

    def __init__(self, options: ClientOptions, journal: Journal, rng: random.Random) -> None:
        self._options = options
        self._journal = journal
        self._rng = rng
        self._transactions = 0
        journal.write(history.Producer(journal.process, now_ns(), is_idempotent=True))
        self._producer = Producer(
            {"bootstrap.servers": options.bootstrap, "transactional.id": _id(options)}
            | COMMON
            | SETTINGS
        )

    def run(self, should_continue: Callable[[], bool]) -> None:
        try:
            self._until_done(self._producer.init_transactions)
            while should_continue():
                self._transact()
                time.sleep(self._rng.uniform(0, PAUSE_S))
            if self._rng.random() < LEAVE_SHARE:
                self._begin()
        except SessionOverError:
            pass
        finally:
            self._journal.close()

    def _transact(self) -> None:
        name = self._begin()
        is_commit = self._rng.random() >= ABORT_SHARE
        if is_commit:
            self._report(name, "commit", "invoke")
            try:
                self._until_done(self._producer.commit_transaction)
            except _MustAbortError:
                is_commit = False
            else:
                self._report(name, "commit", "ok")
        if not is_commit:
            self._until_done(self._producer.abort_transaction)
            self._report(name, "abort", "ok")

    def _begin(self) -> str:
        """Begin a transaction, and send its records."""
        name = f"{self._journal.process}:{self._transactions}"
        self._transactions += 1
        self._report(name, "begin", "ok")
        self._producer.begin_transaction()
        for number in range(self._rng.randint(1, RECORDS_MAX)):
            self._send(f"{name}:{number}", self._rng.randrange(self._options.partitions))
        return name

    def _send(self, value: str, partition: int) -> None:
        name, process = self._options.partition(partition), self._journal.process
        self._journal.write(Send(process, now_ns(), "invoke", name, value))
        try:
            self._producer.produce(
                self._options.topic,
                encode_value(value, self._rng),
                partition=partition,
                on_delivery=functools.partial(self._delivered, name, value),
            )
        except KafkaException as error:
            raise SessionOverError from error
        self._producer.poll(0)

    def _delivered(
        self, partition: str, value: str, error: KafkaError | None, message: Message
    ) -> None:
        if self._journal.is_closed:
            return
        process, offset = self._journal.process, message.offset()
        if error is None and offset is not None and offset >= 0:
            self._journal.write(Send(process, now_ns(), "ok", partition, value, offset))

    def _report(self, name: str, verdict: Verdict, kind: Kind) -> None:
        self._journal.write(Transaction(self._journal.process, now_ns(), name, verdict, kind))

    def _until_done(self, call: Callable[[float], object]) -> None:
        """Repeat a call while its errors pass by themselves."""
        until_s = time.monotonic() + OUTCOME_S_MAX
        while True:
            try:
                call(CALL_S)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if reason.txn_requires_abort():
                    if call == self._producer.commit_transaction:
                        raise _MustAbortError from error
                    raise SessionOverError from error
                if reason.fatal() or not reason.retriable() or time.monotonic() > until_s:
                    raise SessionOverError from error
                time.sleep(0.1)
            else:
                return


class _MustAbortError(Exception):
    """The transaction cannot be committed."""


def write(options: ClientOptions, stop_signal: StopSignal) -> None:
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        session = TransactionalSession(options, options.journal(number), rng)
        session.run(lambda until_s=until_s: stop_signal.continues_until(until_s))


def _id(options: ClientOptions) -> str:
    return f"{options.topic}-{options.name}"


# --- reading ------------------------------------------------------------------------------------


def read_committed(options: ClientOptions, stop_signal: StopSignal) -> None:
    """Read new records, and sometimes begin again as another reader."""
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        journal = options.journal(number)
        journal.write(history.Consumer(journal.process, now_ns()))
        source = _committed_reader(options)
        reader, stable = Reader(source, journal), _StableOffsets(options, journal)
        asked_s = 0.0
        while stop_signal.continues_until(until_s):
            reader.poll()
            if time.monotonic() > asked_s + STABLE_PAUSE_S:
                stable.ask()
                asked_s = time.monotonic()
        source.close()
        journal.close()


def read_all_committed(options: ClientOptions, _stop_signal: StopSignal) -> None:
    """Wait until no transaction is open, and read everything."""
    journal = options.journal(0)
    journal.write(history.Consumer(journal.process, now_ns(), is_final=True))
    source = _committed_reader(options, **{"enable.partition.eof": True})
    stable = _StableOffsets(options, journal)
    until_s = time.monotonic() + FINAL_S_MAX
    while (ends := stable.ask()) != (marks := _high_watermarks(options, source)):
        if time.monotonic() > until_s:
            error = f"transactions are still open: stable up to {ends} of {marks}"
            journal.write(Failure(journal.process, now_ns(), error))
            break
        time.sleep(0.2)
    reader = Reader(source, journal)
    while any(_position(source, options, index) < end for index, end in ends.items()):
        if time.monotonic() > until_s:
            journal.write(Failure(journal.process, now_ns(), f"not all was read of {ends}"))
            break
        reader.poll()
    source.close()
    journal.close()


def _committed_reader(options: ClientOptions, **settings: object) -> Consumer:
    source = consumer(options, **{"isolation.level": "read_committed"} | settings)
    source.assign([TopicPartition(options.topic, index, 0) for index in range(options.partitions)])
    return source


def _high_watermarks(options: ClientOptions, source: Consumer) -> dict[int, int]:
    return {
        index: retry(
            lambda index=index: source.get_watermark_offsets(
                TopicPartition(options.topic, index), 5
            )[1]
        )
        for index in range(options.partitions)
    }


def _position(source: Consumer, options: ClientOptions, index: int) -> int:
    (found,) = source.position([TopicPartition(options.topic, index)])
    return max(found.offset, 0)


class _StableOffsets:
    """Fetches the last stable offsets, which is what a reader of committed records gets."""

    def __init__(self, options: ClientOptions, journal: Journal) -> None:
        self._options = options
        self._journal = journal
        self._admin = AdminClient({"bootstrap.servers": options.bootstrap})

    def ask(self) -> dict[int, int]:
        """The stable offsets of the partitions whose leader responds."""
        began_ns = now_ns()
        requested = {
            TopicPartition(self._options.topic, index): OffsetSpec.latest()
            for index in range(self._options.partitions)
        }
        found: dict[int, int] = {}
        results = self._admin.list_offsets(
            requested, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=5
        )
        for place, future in results.items():
            try:
                offset = future.result().offset
            except KafkaException:
                continue
            if offset < 0:  # librdkafka has no offset of a partition whose leader is away.
                continue
            found[place.partition] = offset
            name = self._options.partition(place.partition)
            end = EndRead(self._journal.process, now_ns(), began_ns, name, offset)
            self._journal.write(end)
        return found
