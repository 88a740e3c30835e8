"""Producers on librdkafka: idempotent with all its defaults, or plain."""

import functools
import random
import time
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from chaos import history
from chaos.clients.orders import Orders, Shift, written
from chaos.history import Failure, Journal, Send, now_ns

PAUSE_S = 0.015
LIFE_S = (15, 60)
UNANSWERED_MAX = 400
"""So many sends may be without an answer before the producer waits."""
FLUSH_S_MAX = 60

COMMON = {"acks": "all", "linger.ms": 5, "reconnect.backoff.max.ms": 500}
IDEMPOTENT = {"enable.idempotence": True}
PLAIN = {"enable.idempotence": False, "max.in.flight": 1}


class Life:
    """One producer, from its creation to the last answer."""

    def __init__(self, orders: Orders, journal: Journal, settings: dict[str, Any]) -> None:
        self._orders = orders
        self._journal = journal
        is_idempotent = bool(settings["enable.idempotence"])
        # A plain one may overtake itself where a partition moves: what waits to be tried again at
        # the old leader comes after what is sent to the new one.
        keeps_order = is_idempotent
        journal.write(history.Producer(journal.process, now_ns(), is_idempotent, keeps_order))
        self._producer = Producer(
            {"bootstrap.servers": orders.bootstrap, "error_cb": self._failed} | COMMON | settings
        )
        self._sent_count = 0
        self.unanswered = 0
        self.placed: dict[str, int] = {}
        """The last offset in each partition."""

    def send(self, partition: int, chance: random.Random) -> None:
        name, process = self._orders.partition(partition), self._journal.process
        value = f"{process}:{self._sent_count}"
        self._sent_count += 1
        self.unanswered += 1
        self._journal.write(Send(process, now_ns(), "invoke", name, value))
        self._producer.produce(
            self._orders.topic,
            written(value, chance),
            partition=partition,
            on_delivery=functools.partial(self._delivered, name, value),
        )

    def listen(self, seconds: float) -> None:
        """Take the answers that come meanwhile."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def finish(self) -> None:
        self._producer.flush(FLUSH_S_MAX)
        self._journal.close()

    def _delivered(
        self, partition: str, value: str, error: KafkaError | None, message: Message
    ) -> None:
        self.unanswered -= 1
        process = self._journal.process
        if error is None:
            offset = self.placed[partition] = message.offset()
            self._journal.write(Send(process, now_ns(), "ok", partition, value, offset))
        else:
            self._journal.write(
                Send(process, now_ns(), "info", partition, value, error=error.name())
            )

    def _failed(self, error: KafkaError) -> None:
        """Everything passes but what is fatal."""
        if error.fatal():
            self._journal.write(Failure(self._journal.process, now_ns(), error.str()))


def produce(orders: Orders, shift: Shift, settings: dict[str, Any]) -> None:
    chance = random.Random(orders.seed)
    for number, until_s in shift.lives(chance, *LIFE_S):
        life = Life(orders, orders.journal(number), settings)
        while shift.goes_on(until_s):
            if life.unanswered < UNANSWERED_MAX:
                life.send(chance.randrange(orders.partitions), chance)
            life.listen(PAUSE_S)
        life.finish()
