"""A member of a group on aiokafka, which rebalances behind the back of whoever reads.

So a batch is worked on and committed under a lock, and partitions are given up under it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

from services.member_events import Assigned, Committed, Ended, Read, Refused, Revoked
from services.members.orders import BATCH_RECORDS_MAX, Orders, Shift, orders, tell

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        tell(Assigned(partitions=numbers(assigned)))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        async with self._lock:
            tell(Revoked(partitions=numbers(revoked)))


async def work(told: Orders, shift: Shift) -> None:
    lock = asyncio.Lock()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=told.address,
        group_id=told.group,
        group_instance_id=told.instance_id,
        partition_assignment_strategy=(STRATEGIES[told.strategy],),
        session_timeout_ms=told.session_timeout_ms,
        heartbeat_interval_ms=told.heartbeat_interval_ms,
        auto_offset_reset=told.reset,
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    consumer.subscribe([told.topic], listener=Listener(lock))
    await consumer.start()
    while not shift.is_over:
        batch = await consumer.getmany(timeout_ms=50, max_records=BATCH_RECORDS_MAX)
        # Nothing can come between: what is handed out here has not been given up yet.
        async with lock:
            await finish(consumer, batch)
    await consumer.stop()
    tell(Ended())


async def finish(consumer: AIOKafkaConsumer, batch: dict[TopicPartition, list[Any]]) -> None:
    done = {place: records[-1].offset + 1 for place, records in batch.items()}
    for place, records in batch.items():
        tell(Read(partition=place.partition, first=records[0].offset, end=done[place]))
    if not done:
        return
    try:
        await consumer.commit(done)
    except KafkaError as error:
        tell(Refused(error=type(error).__name__))
        return
    for place, offset in done.items():
        tell(Committed(partition=place.partition, offset=offset))


def numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    asyncio.run(work(orders(), Shift()))
