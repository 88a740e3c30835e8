"""aiokafka: an idempotent producer, and a group of its own."""

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
from chaos.clients.orders import Orders, Shift, value_of, written
from chaos.history import Commit, Failure, Journal, Move, Poll, Send, now_ns

PAUSE_S = 0.02
LIFE_S = (15, 60)
UNANSWERED_MAX = 200
FLUSH_S_MAX = 60
RETRY_S = 0.3
BATCH_RECORDS_MAX = 200

HOPELESS = (CorruptRecordException, NoOffsetForPartitionError, OffsetOutOfRangeError)
"""No fault allows these; that a commit comes too late, or to the wrong broker, passes."""


def produce(orders: Orders, shift: Shift) -> None:
    _live(orders, shift, _produce)


def consume(orders: Orders, shift: Shift) -> None:
    _live(orders, shift, _consume)


def _live(
    orders: Orders,
    shift: Shift,
    life: Callable[[Orders, Shift, Journal, float, random.Random], Coroutine[None, None, None]],
) -> None:
    """One life after the other, each in a loop of its own, with which ends whatever it forgot."""
    chance = random.Random(orders.seed)
    for number, until_s in shift.lives(chance, *LIFE_S):
        journal = orders.journal(number)
        asyncio.run(life(orders, shift, journal, until_s, chance))
        journal.close()


# --- producing ------------------------------------------------------------------------------------


async def _produce(
    orders: Orders, shift: Shift, journal: Journal, until_s: float, chance: random.Random
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=orders.bootstrap, enable_idempotence=True, acks="all", linger_ms=5
    )
    if await _is_started(producer):
        await _ProducerLife(orders, journal, producer).work(shift, until_s, chance)


class _ProducerLife:
    """One producer, from its creation to the last answer."""

    def __init__(self, orders: Orders, journal: Journal, producer: AIOKafkaProducer) -> None:
        self._orders = orders
        self._journal = journal
        self._producer = producer
        self._unanswered: set[asyncio.Future[RecordMetadata]] = set()

    async def work(self, shift: Shift, until_s: float, chance: random.Random) -> None:
        process = self._journal.process
        self._journal.write(
            history.Producer(process, now_ns(), is_idempotent=True, keeps_order=True)
        )
        number = 0
        while shift.goes_on(until_s):
            if len(self._unanswered) < UNANSWERED_MAX:
                await self._send(f"{process}:{number}", chance)
                number += 1
            await asyncio.sleep(PAUSE_S)
        if self._unanswered:
            await asyncio.wait(self._unanswered, timeout=FLUSH_S_MAX)
        await _stop(self._producer)

    async def _send(self, value: str, chance: random.Random) -> None:
        partition = chance.randrange(self._orders.partitions)
        name, process = self._orders.partition(partition), self._journal.process
        self._journal.write(Send(process, now_ns(), "invoke", name, value))
        try:
            future = await self._producer.send(
                self._orders.topic, written(value, chance), partition=partition
            )
        except KafkaError as error:
            self._journal.write(Send(process, now_ns(), "info", name, value, error=repr(error)))
            return
        self._unanswered.add(future)
        future.add_done_callback(functools.partial(self._delivered, name, value))

    def _delivered(
        self, partition: str, value: str, future: "asyncio.Future[RecordMetadata]"
    ) -> None:
        self._unanswered.discard(future)
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
    orders: Orders, shift: Shift, journal: Journal, until_s: float, _chance: random.Random
) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=orders.bootstrap,
        group_id=orders.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
    )
    if await _is_started(consumer):
        await _MemberLife(orders, journal, consumer).work(shift, until_s)


class _MemberLife(ConsumerRebalanceListener):
    """One member, from when it joins to when it leaves."""

    def __init__(self, orders: Orders, journal: Journal, consumer: AIOKafkaConsumer) -> None:
        self._orders = orders
        self._journal = journal
        self._consumer = consumer

    async def work(self, shift: Shift, until_s: float) -> None:
        process = self._journal.process
        self._journal.write(history.Consumer(process, now_ns(), group=self._orders.group))
        self._consumer.subscribe([self._orders.topic], listener=self)
        while shift.goes_on(until_s):
            try:
                await self._read()
            except KafkaError as error:
                if isinstance(error, HOPELESS):
                    self._journal.write(Failure(process, now_ns(), repr(error)))
                await asyncio.sleep(RETRY_S)
        await _stop(self._consumer)

    async def _read(self) -> None:
        found = await self._consumer.getmany(timeout_ms=200, max_records=BATCH_RECORDS_MAX)
        records = {
            f"{place.topic}/{place.partition}": [
                (record.offset, value_of(record.value)) for record in batch
            ]
            for place, batch in found.items()
            if batch
        }
        if not records:
            return
        process, group = self._journal.process, self._orders.group
        self._journal.write(Poll(process, now_ns(), records))
        ends = {place: batch[-1].offset + 1 for place, batch in found.items() if batch}
        await self._consumer.commit(ends)
        for place, offset in ends.items():
            name = self._orders.partition(place.partition)
            self._journal.write(Commit(process, now_ns(), "ok", group, name, offset))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        names = tuple(self._orders.partition(each.partition) for each in assigned)
        self._journal.write(Move(self._journal.process, now_ns(), names))


# --- both -----------------------------------------------------------------------------------------


async def _is_started(client: AIOKafkaProducer | AIOKafkaConsumer) -> bool:
    """Start a client; it gives up at once where nobody answers, and then a new one has to try."""
    try:
        await client.start()
    except (KafkaError, OSError):
        await _stop(client)
        await asyncio.sleep(RETRY_S)
        return False
    return True


async def _stop(client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
    """Let a client stop; it may trip over tasks of its own that it cancels."""
    stopping = asyncio.create_task(client.stop())
    await asyncio.wait([stopping], timeout=FLUSH_S_MAX)
    if stopping.done() and not stopping.cancelled():
        stopping.exception()
