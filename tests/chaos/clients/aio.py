"""aiokafka clients: an idempotent producer, and a member of a group."""

import asyncio
import functools
import random
from collections.abc import Callable, Coroutine, Iterable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.structs import RecordMetadata, TopicPartition

from chaos import history
from chaos.clients.options import ClientOptions, StopSignal, decode_value, encode_value
from chaos.history import Commit, Failure, Journal, Move, Poll, Send, now_ns

PAUSE_S = 0.02
SESSION_S = (15, 60)
IN_FLIGHT_MAX = 200
FLUSH_S_MAX = 60
RETRY_S = 0.3
BATCH_RECORDS_MAX = 200

FATAL_ERRORS = (CorruptRecordException, NoOffsetForPartitionError, OffsetOutOfRangeError)
"""Errors that no fault explains. Commits that are late or reach the wrong broker are fine."""


def produce(options: ClientOptions, stop_signal: StopSignal) -> None:
    _run_sessions(options, stop_signal, _produce)


def consume(options: ClientOptions, stop_signal: StopSignal) -> None:
    _run_sessions(options, stop_signal, _consume)


def _run_sessions(
    options: ClientOptions,
    stop_signal: StopSignal,
    session: Callable[
        [ClientOptions, StopSignal, Journal, float, random.Random], Coroutine[None, None, None]
    ],
) -> None:
    """Run sessions one after the other, each in its own event loop, which ends leaked tasks."""
    rng = random.Random(options.seed)
    for number, until_s in stop_signal.sessions(rng, *SESSION_S):
        journal = options.journal(number)
        asyncio.run(session(options, stop_signal, journal, until_s, rng))
        journal.close()


# --- producing ------------------------------------------------------------------------------------


async def _produce(
    options: ClientOptions,
    stop_signal: StopSignal,
    journal: Journal,
    until_s: float,
    rng: random.Random,
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=options.bootstrap, enable_idempotence=True, acks="all", linger_ms=5
    )
    if await _is_started(producer):
        await _ProducerSession(options, journal, producer).work(stop_signal, until_s, rng)


class _ProducerSession:
    """One producer, from its creation to the last response."""

    def __init__(
        self, options: ClientOptions, journal: Journal, producer: AIOKafkaProducer
    ) -> None:
        self._options = options
        self._journal = journal
        self._producer = producer
        self._in_flight: set[asyncio.Future[RecordMetadata]] = set()

    async def work(self, stop_signal: StopSignal, until_s: float, rng: random.Random) -> None:
        process = self._journal.process
        self._journal.write(
            history.Producer(process, now_ns(), is_idempotent=True, keeps_order=True)
        )
        number = 0
        while stop_signal.continues_until(until_s):
            if len(self._in_flight) < IN_FLIGHT_MAX:
                await self._send(f"{process}:{number}", rng)
                number += 1
            await asyncio.sleep(PAUSE_S)
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=FLUSH_S_MAX)
        await _stop(self._producer)

    async def _send(self, value: str, rng: random.Random) -> None:
        partition = rng.randrange(self._options.partitions)
        name, process = self._options.partition(partition), self._journal.process
        self._journal.write(Send(process, now_ns(), "invoke", name, value))
        try:
            future = await self._producer.send(
                self._options.topic, encode_value(value, rng), partition=partition
            )
        except KafkaError as error:
            self._journal.write(Send(process, now_ns(), "info", name, value, error=repr(error)))
            return
        self._in_flight.add(future)
        future.add_done_callback(functools.partial(self._delivered, name, value))

    def _delivered(
        self, partition: str, value: str, future: "asyncio.Future[RecordMetadata]"
    ) -> None:
        self._in_flight.discard(future)
        if self._journal.is_closed or future.cancelled():
            return
        process, error = self._journal.process, future.exception()
        if error is None:
            offset = future.result().offset
            self._journal.write(Send(process, now_ns(), "ok", partition, value, offset))
        else:
            self._journal.write(
                Send(process, now_ns(), "info", partition, value, error=repr(error))
            )


# --- consuming ------------------------------------------------------------------------------------


async def _consume(
    options: ClientOptions,
    stop_signal: StopSignal,
    journal: Journal,
    until_s: float,
    _rng: random.Random,
) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
    )
    if await _is_started(consumer):
        await _MemberSession(options, journal, consumer).work(stop_signal, until_s)


class _MemberSession(ConsumerRebalanceListener):
    """One member, from its join to its leave."""

    def __init__(
        self, options: ClientOptions, journal: Journal, consumer: AIOKafkaConsumer
    ) -> None:
        self._options = options
        self._journal = journal
        self._consumer = consumer

    async def work(self, stop_signal: StopSignal, until_s: float) -> None:
        process = self._journal.process
        self._journal.write(history.Consumer(process, now_ns(), group=self._options.group))
        self._consumer.subscribe([self._options.topic], listener=self)
        while stop_signal.continues_until(until_s):
            try:
                await self._read()
            except KafkaError as error:
                if isinstance(error, FATAL_ERRORS):
                    self._journal.write(Failure(process, now_ns(), repr(error)))
                await asyncio.sleep(RETRY_S)
        await _stop(self._consumer)

    async def _read(self) -> None:
        result = await self._consumer.getmany(timeout_ms=200, max_records=BATCH_RECORDS_MAX)
        records = {
            f"{topic_partition.topic}/{topic_partition.partition}": [
                (record.offset, decode_value(record.value)) for record in batch
            ]
            for topic_partition, batch in result.items()
            if batch
        }
        if not records:
            return
        process, group = self._journal.process, self._options.group
        self._journal.write(Poll(process, now_ns(), records))
        ends = {
            topic_partition: batch[-1].offset + 1
            for topic_partition, batch in result.items()
            if batch
        }
        await self._consumer.commit(ends)
        for topic_partition, offset in ends.items():
            name = self._options.partition(topic_partition.partition)
            self._journal.write(Commit(process, now_ns(), "ok", group, name, offset))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        names = tuple(self._options.partition(each.partition) for each in assigned)
        self._journal.write(Move(self._journal.process, now_ns(), names))


# --- both -----------------------------------------------------------------------------------------


async def _is_started(client: AIOKafkaProducer | AIOKafkaConsumer) -> bool:
    """Start a client; return False if no broker responds, so that the caller creates a new one."""
    try:
        await client.start()
    except (KafkaError, OSError):
        await _stop(client)
        await asyncio.sleep(RETRY_S)
        return False
    return True


async def _stop(client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
    """Stop a client; ignore errors of tasks that it cancels."""
    stopping = asyncio.create_task(client.stop())
    await asyncio.wait([stopping], timeout=FLUSH_S_MAX)
    if stopping.done() and not stopping.cancelled():
        stopping.exception()
