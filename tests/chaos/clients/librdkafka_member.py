"""A member of a group on librdkafka: it commits what it has read, leaves, and comes again."""

import random

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos import history
from chaos.clients.librdkafka_reader import Reader, consumer
from chaos.clients.orders import Orders, Shift
from chaos.history import Commit, Journal, Move, now_ns

LIFE_S = (20, 60)
SESSION_TIMEOUT_MS = 6000


class Life:
    """One member, from when it joins to when it leaves."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        journal.write(history.Consumer(journal.process, now_ns(), group=orders.group))
        source = consumer(
            orders,
            **{
                "group.id": orders.group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 1000,
            },
        )
        self._reader = Reader(source, journal)
        source.subscribe([orders.topic], on_assign=self._assigned, on_revoke=self._revoked)

    def work(self) -> None:
        ends = self._reader.poll()
        if ends:
            self._commit(ends)

    def leave(self) -> None:
        self._reader.source.close()
        self._journal.close()

    def _commit(self, ends: dict[int, int]) -> None:
        offsets = [TopicPartition(self._orders.topic, *end) for end in ends.items()]
        try:
            committed = self._reader.source.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # It may count or not, and whoever reads the same again will tell.
        for each in committed or []:
            name, process = self._orders.partition(each.partition), self._journal.process
            kind = "ok" if each.error is None else "info"
            self._journal.write(
                Commit(process, now_ns(), kind, self._orders.group, name, each.offset)
            )

    def _revoked(self, _: Consumer, _partitions: list[TopicPartition]) -> None:
        """What was read and not committed, somebody reads again."""
        self._reader.note()

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._reader.note()
        names = tuple(self._orders.partition(each.partition) for each in partitions)
        self._journal.write(Move(self._journal.process, now_ns(), names))


def consume(orders: Orders, shift: Shift) -> None:
    chance = random.Random(orders.seed)
    for number, until_s in shift.lives(chance, *LIFE_S):
        life = Life(orders, orders.journal(number))
        while shift.goes_on(until_s):
            life.work()
        life.leave()
