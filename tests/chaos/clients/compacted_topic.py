"""Writes to a topic that its brokers compact, and reads it from its start to its end.

Some keys are written all the time and others rarely, so that there are old values, and keys that
stay deleted for long.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, TopicPartition

from chaos import history
from chaos.clients.librdkafka_producer import IDEMPOTENT, IN_FLIGHT_MAX, ProducerSession
from chaos.clients.librdkafka_reader import FATAL_ERRORS, consumer
from chaos.clients.options import PADDING_BYTES_MAX, ClientOptions, StopSignal
from chaos.history import Failure, Journal, Poll, Scan, now_ns
from chaos.keyed_value import KeyedValue

DELETE_RETENTION_S = 6
"""As long as tombstones stay. A reader that takes longer may miss one, in Kafka too."""
TOPIC_CONFIGS = {
    "cleanup.policy": "compact",
    "delete.retention.ms": str(DELETE_RETENTION_S * 1000),
    "min.cleanable.dirty.ratio": "0.01",
}

KEYS = 400
TOMBSTONE_SHARE = 0.3
SEND_PAUSE_S = 0.01
SESSION_S = (10, 40)
SCAN_PAUSE_S = (0.5, 3)
POLL_S = 0.1
FINAL_S_MAX = 120


class KeyedSession(ProducerSession):
    """One producer of records with keys."""

    def send_keyed(self, partition: int, rng: random.Random) -> None:
        key = f"k{int(KEYS * rng.random() ** 3)}"
        value = KeyedValue(key, self.next_id(), is_tombstone=rng.random() < TOMBSTONE_SHARE)
        self.produce(
            partition,
            str(value),
            key=key.encode(),
            value=None if value.is_tombstone else b"." * rng.randint(0, PADDING_BYTES_MAX),
            headers={"id": value.id.encode()},
        )


def write(options: ClientOptions, stop_signal: StopSignal) -> None:
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        session = KeyedSession(options, options.journal(number), IDEMPOTENT)
        while stop_signal.continues_until(until_s):
            if session.in_flight < IN_FLIGHT_MAX:
                session.send_keyed(rng.randrange(options.partitions), rng)
            session.listen(SEND_PAUSE_S)
        session.finish()


def scan_again_and_again(options: ClientOptions, stop_signal: StopSignal) -> None:
    rng = random.Random(options.seed)
    number = 0
    while not stop_signal.is_set:
        _scan(options, options.journal(number), should_continue=lambda: not stop_signal.is_set)
        number += 1
        stop_signal.wait(rng.uniform(*SCAN_PAUSE_S))


def scan_at_the_end(options: ClientOptions, _stop_signal: StopSignal) -> None:
    """Scan until every partition was read fast enough to see all tombstones."""
    until_s = time.monotonic() + FINAL_S_MAX
    number = 0
    left = set(range(options.partitions))
    while left:
        journal = options.journal(number)
        if time.monotonic() > until_s:
            journal.write(Failure(journal.process, now_ns(), f"partitions {left} were not read"))
            journal.close()
            return
        left -= _scan(options, journal, is_final=True, should_continue=lambda: True)
        number += 1


def _scan(
    options: ClientOptions,
    journal: Journal,
    *,
    is_final: bool = False,
    should_continue: Callable[[], bool],
) -> set[int]:
    """Read all partitions; return those that were read to their ends fast enough."""
    journal.write(history.Consumer(journal.process, now_ns(), is_final=is_final))
    began_ns = now_ns()
    until_s = time.monotonic() + DELETE_RETENTION_S
    source = consumer(options, **{"enable.partition.eof": True})
    source.assign([TopicPartition(options.topic, index, 0) for index in range(options.partitions)])
    done: set[int] = set()
    while len(done) < options.partitions and time.monotonic() < until_s and should_continue():
        records: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for message in source.consume(500, POLL_S):
            name = options.partition(message.partition())
            error = message.error()
            if error is None:
                if message.partition() not in done:
                    records[name].append((message.offset(), str(_value_of(message))))
            elif error.code() == KafkaError._PARTITION_EOF:
                if message.partition() not in done:
                    _write_records(journal, records)
                    journal.write(Scan(journal.process, now_ns(), began_ns, name))
                    done.add(message.partition())
            elif error.code() in FATAL_ERRORS:
                journal.write(Failure(journal.process, now_ns(), f"{name}: {error.str()}"))
        _write_records(journal, records)
    source.close()
    journal.close()
    return done


def _write_records(journal: Journal, records: defaultdict[str, list[tuple[int, str]]]) -> None:
    if records:
        journal.write(Poll(journal.process, now_ns(), dict(records)))
        records.clear()


def _value_of(message: Message) -> KeyedValue:
    headers = dict(message.headers() or ())
    key = (message.key() or b"").decode()
    return KeyedValue(key, headers["id"].decode(), is_tombstone=message.value() is None)
