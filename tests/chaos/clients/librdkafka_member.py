"""A group member on librdkafka: it commits what it has read, leaves, and joins again."""

import random

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos import history
from chaos.clients.librdkafka_reader import Reader, consumer
from chaos.clients.options import ClientOptions, StopSignal
from chaos.history import Commit, Journal, Move, now_ns

SESSION_S = (20, 60)
SESSION_TIMEOUT_MS = 6000


class MemberSession:
    """One member, from its join to its leave."""

    def __init__(self, options: ClientOptions, journal: Journal) -> None:
        self._options = options
        self._journal = journal
        journal.write(history.Consumer(journal.process, now_ns(), group=options.group))
        source = consumer(
            options,
            **{
                "group.id": options.group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 1000,
            },
        )
        self._reader = Reader(source, journal)
        source.subscribe([options.topic], on_assign=self._assigned, on_revoke=self._revoked)

    def work(self) -> None:
        ends = self._reader.poll()
        if ends:
            self._commit(ends)

    def leave(self) -> None:
        self._reader.source.close()
        self._journal.close()

    def _commit(self, ends: dict[int, int]) -> None:
        offsets = [TopicPartition(self._options.topic, *end) for end in ends.items()]
        try:
            committed = self._reader.source.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # The outcome is unknown; later reads of the group show it.
        for each in committed or []:
            name, process = self._options.partition(each.partition), self._journal.process
            kind = "ok" if each.error is None else "info"
            self._journal.write(
                Commit(process, now_ns(), kind, self._options.group, name, each.offset)
            )

    def _revoked(self, _: Consumer, _partitions: list[TopicPartition]) -> None:
        """Write the records read so far; another member reads the uncommitted ones again."""
        self._reader.write_poll()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._reader.write_poll()
        names = tuple(self._options.partition(each.partition) for each in partitions)
        self._journal.write(Move(self._journal.process, now_ns(), names))


def consume(options: ClientOptions, stop_signal: StopSignal) -> None:
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        session = MemberSession(options, options.journal(number))
        while stop_signal.continues_until(until_s):
            session.work()
        session.leave()
