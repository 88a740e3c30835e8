"""Producers on librdkafka: idempotent with its defaults, or plain."""

import functools
import random
import time
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from chaos import history
from chaos.clients.options import ClientOptions, StopSignal, encode_value
from chaos.history import Failure, Journal, Send, now_ns

PAUSE_S = 0.015
SESSION_S = (15, 60)
IN_FLIGHT_MAX = 400
"""How many sends may be in flight before the producer waits."""
FLUSH_S_MAX = 60

COMMON = {"acks": "all", "linger.ms": 5, "reconnect.backoff.max.ms": 500}
IDEMPOTENT = {"enable.idempotence": True, "debug": "eos"}
"""Its log says why it began a new producer epoch, if it did."""
PLAIN = {"enable.idempotence": False, "max.in.flight": 1}


class ProducerSession:
    """One producer, from its creation to the last response."""

    def __init__(self, options: ClientOptions, journal: Journal, settings: dict[str, Any]) -> None:
        self._options = options
        self._journal = journal
        is_idempotent = bool(settings["enable.idempotence"])
        # A plain producer may reorder records when a leader changes: a retry that waits for the old
        # leader is sent after newer records to the new leader.
        keeps_order = is_idempotent
        journal.write(history.Producer(journal.process, now_ns(), is_idempotent, keeps_order))
        self._producer = Producer(
            {"bootstrap.servers": options.bootstrap, "error_cb": self._failed} | COMMON | settings
        )
        self._sent_count = 0
        self.in_flight = 0
        self.last_offsets: dict[str, int] = {}
        """The last acknowledged offset in each partition."""

    def send(self, partition: int, rng: random.Random) -> None:
        value = self.next_id()
        self.produce(partition, value, value=encode_value(value, rng))

    def next_id(self) -> str:
        self._sent_count += 1
        return f"{self._journal.process}:{self._sent_count - 1}"

    def produce(self, partition: int, name: str, **record: Any) -> None:
        """Send a record that the history calls `name`."""
        topic_partition = self._options.partition(partition)
        self.in_flight += 1
        send = Send(self._journal.process, now_ns(), "invoke", topic_partition, name)
        self._journal.write(send)
        self._producer.produce(
            self._options.topic,
            partition=partition,
            on_delivery=functools.partial(self._delivered, topic_partition, name),
            **record,
        )

    def listen(self, seconds: float) -> None:
        """Process the responses that arrive within this time."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def finish(self) -> None:
        self._producer.flush(FLUSH_S_MAX)
        self._journal.close()

    def _delivered(
        self, partition: str, value: str, error: KafkaError | None, message: Message
    ) -> None:
        self.in_flight -= 1
        process, offset = self._journal.process, message.offset()
        if error is None and offset is not None:
            self.last_offsets[partition] = offset
            self._journal.write(Send(process, now_ns(), "ok", partition, value, offset))
        else:
            # Without an error, the broker had the batch already, and does not know its offset.
            name = "no offset" if error is None else error.name()
            self._journal.write(Send(process, now_ns(), "info", partition, value, error=name))

    def _failed(self, error: KafkaError) -> None:
        """Record fatal errors; librdkafka retries after all others."""
        if error.fatal():
            self._journal.write(Failure(self._journal.process, now_ns(), error.str()))


def produce(options: ClientOptions, stop_signal: StopSignal, settings: dict[str, Any]) -> None:
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        session = ProducerSession(options, options.journal(number), settings)
        while stop_signal.continues_until(until_s):
            if session.in_flight < IN_FLIGHT_MAX:
                session.send(rng.randrange(options.partitions), rng)
            session.listen(PAUSE_S)
        session.finish()
