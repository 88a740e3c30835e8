"""Readers on librdkafka without a group: one that reads and seeks while faults are injected, and
one that reads everything at the end.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from chaos import history
from chaos.clients.options import ClientOptions, StopSignal, decode_value
from chaos.history import CommitRead, Failure, Journal, Move, Poll, now_ns

BATCH_RECORDS_MAX = 200
POLL_S = 0.2
SEEK_SHARE = 0.02
"""The share of polls after which the reader seeks back."""
FINAL_S_MAX = 120
ASK_S_MAX = 60

Response = TypeVar("Response")

FATAL_ERRORS = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError._FATAL,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
"""Errors that no fault explains, such as the loss of a known offset."""


def consumer(options: ClientOptions, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 500,
        }
        | settings
    )


class Reader:
    """Polls, and records what it gets."""

    def __init__(self, source: Consumer, journal: Journal) -> None:
        self.source = source
        self._journal = journal
        self._messages: list[Message] = []

    def poll(self) -> dict[int, int]:
        """Poll; return the next offset of each partition that had records."""
        until_s = time.monotonic() + POLL_S
        while len(self._messages) < BATCH_RECORDS_MAX:
            message = self.source.poll(max(0, until_s - time.monotonic()))
            if message is None:
                break
            error = message.error()
            if error is None:
                self._messages.append(message)
            elif error.code() in FATAL_ERRORS:
                where = f"{message.topic()}/{message.partition()}"
                failure = Failure(self._journal.process, now_ns(), f"{where}: {error.str()}")
                self._journal.write(failure)
        return self.write_poll()

    def write_poll(self) -> dict[int, int]:
        """Record the messages so far; return the next offset of each of their partitions."""
        messages, self._messages = self._messages, []
        records: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for message in messages:
            name = f"{message.topic()}/{message.partition()}"
            records[name].append((message.offset(), decode_value(message.value())))
        if records:
            self._journal.write(Poll(self._journal.process, now_ns(), dict(records)))
        return {message.partition(): message.offset() + 1 for message in messages}


def read_and_seek(options: ClientOptions, stop_signal: StopSignal) -> None:
    """Read new records, and sometimes seek back to old ones."""
    rng = random.Random(options.seed)
    journal = options.journal(0)
    journal.write(history.Consumer(journal.process, now_ns()))
    source = consumer(options)
    reader = Reader(source, journal)
    source.assign([TopicPartition(options.topic, index, 0) for index in range(options.partitions)])
    ends = dict.fromkeys(range(options.partitions), 0)
    while not stop_signal.is_set:
        for partition, offset in reader.poll().items():
            ends[partition] = max(ends[partition], offset)
        if rng.random() < SEEK_SHARE:
            partition = rng.randrange(options.partitions)
            journal.write(Move(journal.process, now_ns(), (options.partition(partition),)))
            offset = rng.randint(0, ends[partition])
            source.seek(TopicPartition(options.topic, partition, offset))
    source.close()
    journal.close()


def read_all(options: ClientOptions, _stop_signal: StopSignal) -> None:
    """Read every partition from start to end, and fetch the committed offsets of all groups."""
    journal = options.journal(0)
    journal.write(history.Consumer(journal.process, now_ns(), is_final=True))
    source = consumer(options)
    offsets_by_value = [
        TopicPartition(options.topic, index, 0) for index in range(options.partitions)
    ]
    ends = {
        topic_partition.partition: retry(
            lambda topic_partition=topic_partition: source.get_watermark_offsets(
                topic_partition, 5
            )[1]
        )
        for topic_partition in offsets_by_value
    }
    source.assign(offsets_by_value)
    reader = Reader(source, journal)
    positions = dict.fromkeys(ends, 0)
    until_s = time.monotonic() + FINAL_S_MAX
    while any(positions[index] < end for index, end in ends.items()):
        if time.monotonic() > until_s:
            error = f"read only up to {positions} of {ends}"
            journal.write(Failure(journal.process, now_ns(), error))
            break
        positions |= reader.poll()
    source.close()
    for group in options.groups:
        _ask(options, group, journal)
    journal.close()


def _ask(options: ClientOptions, group: str, journal: Journal) -> None:
    began_ns = now_ns()
    for index, offset in committed(options, group).items():
        name = options.partition(index)
        journal.write(CommitRead(journal.process, now_ns(), began_ns, group, name, offset))


def committed(options: ClientOptions, group: str) -> dict[int, int]:
    """The committed offsets of a group by partition; -1 if there is none."""
    asker = consumer(options, **{"group.id": group})
    offsets_by_value = [TopicPartition(options.topic, index) for index in range(options.partitions)]
    result = retry(lambda: asker.committed(offsets_by_value, 5))
    asker.close()
    return {
        topic_partition.partition: max(topic_partition.offset, -1) for topic_partition in result
    }


def retry(ask: Callable[[], Response]) -> Response:
    """Call until there is no Kafka error, or the time is over."""
    until_s = time.monotonic() + ASK_S_MAX
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.2)
