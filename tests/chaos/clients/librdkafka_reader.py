"""Readers on librdkafka that choose for themselves what they read: one that wanders about as long
as there is trouble, and one that reads everything when it is over."""

import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from chaos import history
from chaos.clients.orders import Orders, Shift, value_of
from chaos.history import CommitRead, Failure, Journal, Move, Poll, now_ns

BATCH_RECORDS_MAX = 200
POLL_S = 0.2
WANDER_SHARE = 0.02
"""After so many polls it reads something again."""
FINAL_S_MAX = 120
ASK_S_MAX = 60

Answer = TypeVar("Answer")

HOPELESS = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError._FATAL,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
"""An offset that was there is said not to be: no fault allows that."""


def consumer(orders: Orders, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": orders.bootstrap,
            "group.id": "nobody's",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 500,
        }
        | settings
    )


class Reader:
    """Polls, and writes down what comes."""

    def __init__(self, source: Consumer, journal: Journal) -> None:
        self.source = source
        self._journal = journal
        self._messages: list[Message] = []

    def poll(self) -> dict[int, int]:
        """Take what comes next; where each partition goes on from here."""
        until_s = time.monotonic() + POLL_S
        while len(self._messages) < BATCH_RECORDS_MAX:
            message = self.source.poll(max(0, until_s - time.monotonic()))
            if message is None:
                break
            error = message.error()
            if error is None:
                self._messages.append(message)
            elif error.code() in HOPELESS:
                where = f"{message.topic()}/{message.partition()}"
                failure = Failure(self._journal.process, now_ns(), f"{where}: {error.str()}")
                self._journal.write(failure)
        return self.note()

    def note(self) -> dict[int, int]:
        """Write down what has come up to now; where each partition of it goes on."""
        messages, self._messages = self._messages, []
        records: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for message in messages:
            name = f"{message.topic()}/{message.partition()}"
            records[name].append((message.offset(), value_of(message.value())))
        if records:
            self._journal.write(Poll(self._journal.process, now_ns(), dict(records)))
        return {message.partition(): message.offset() + 1 for message in messages}


def wander(orders: Orders, shift: Shift) -> None:
    """Read everything as it comes, and now and then something old once more."""
    chance = random.Random(orders.seed)
    journal = orders.journal(0)
    journal.write(history.Consumer(journal.process, now_ns()))
    source = consumer(orders)
    reader = Reader(source, journal)
    source.assign([TopicPartition(orders.topic, index, 0) for index in range(orders.partitions)])
    ends = dict.fromkeys(range(orders.partitions), 0)
    while not shift.is_over:
        for partition, offset in reader.poll().items():
            ends[partition] = max(ends[partition], offset)
        if chance.random() < WANDER_SHARE:
            partition = chance.randrange(orders.partitions)
            journal.write(Move(journal.process, now_ns(), (orders.partition(partition),)))
            offset = chance.randint(0, ends[partition])
            source.seek(TopicPartition(orders.topic, partition, offset))
    source.close()
    journal.close()


def read_all(orders: Orders, _shift: Shift) -> None:
    """Read every partition from its start to its end, and ask how far all groups are."""
    journal = orders.journal(0)
    journal.write(history.Consumer(journal.process, now_ns(), is_final=True))
    source = consumer(orders)
    places = [TopicPartition(orders.topic, index, 0) for index in range(orders.partitions)]
    ends = {
        place.partition: patiently(lambda place=place: source.get_watermark_offsets(place, 5)[1])
        for place in places
    }
    source.assign(places)
    reader = Reader(source, journal)
    positions = dict.fromkeys(ends, 0)
    until_s = time.monotonic() + FINAL_S_MAX
    while any(positions[index] < end for index, end in ends.items()):
        if time.monotonic() > until_s:
            error = f"could only read up to {positions}, and there are {ends}"
            journal.write(Failure(journal.process, now_ns(), error))
            break
        positions |= reader.poll()
    source.close()
    for group in orders.groups:
        _ask(orders, group, journal)
    journal.close()


def _ask(orders: Orders, group: str, journal: Journal) -> None:
    began_ns = now_ns()
    for index, offset in committed(orders, group).items():
        name = orders.partition(index)
        journal.write(CommitRead(journal.process, now_ns(), began_ns, group, name, offset))


def committed(orders: Orders, group: str) -> dict[int, int]:
    """How far a group is in each partition; -1 for nowhere."""
    asker = consumer(orders, **{"group.id": group})
    places = [TopicPartition(orders.topic, index) for index in range(orders.partitions)]
    found = patiently(lambda: asker.committed(places, 5))
    asker.close()
    return {place.partition: max(place.offset, -1) for place in found}


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask again until there is an answer."""
    until_s = time.monotonic() + ASK_S_MAX
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.2)
