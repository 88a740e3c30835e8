"""A group member on aiokafka, which rebalances in a background task.

So a batch is processed and committed under a lock, and partitions are revoked under it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

from services.member_events import Assigned, CommitRejected, Committed, Ended, Read, Revoked
from services.members.options import (
    BATCH_RECORDS_MAX,
    MemberOptions,
    StopSignal,
    emit,
    parse_options,
)

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        emit(Assigned(partitions=partition_indexes(assigned)))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        async with self._lock:
            emit(Revoked(partitions=partition_indexes(revoked)))


async def run(options: MemberOptions, stop_signal: StopSignal) -> None:
    lock = asyncio.Lock()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=options.address,
        group_id=options.group,
        group_instance_id=options.instance_id,
        partition_assignment_strategy=(STRATEGIES[options.strategy],),
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        auto_offset_reset=options.reset,
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    consumer.subscribe([options.topic], listener=Listener(lock))
    await consumer.start()
    while not stop_signal.is_set:
        batch = await consumer.getmany(timeout_ms=50, max_records=BATCH_RECORDS_MAX)
        # There is no await in between: these partitions are not revoked yet.
        async with lock:
            await process_batch(consumer, batch)
    await consumer.stop()
    emit(Ended())


async def process_batch(consumer: AIOKafkaConsumer, batch: dict[TopicPartition, list[Any]]) -> None:
    done = {topic_partition: records[-1].offset + 1 for topic_partition, records in batch.items()}
    for topic_partition, records in batch.items():
        emit(
            Read(
                partition=topic_partition.partition,
                first=records[0].offset,
                end=done[topic_partition],
            )
        )
    if not done:
        return
    try:
        await consumer.commit(done)
    except KafkaError as error:
        emit(CommitRejected(error=type(error).__name__))
        return
    for topic_partition, offset in done.items():
        emit(Committed(partition=topic_partition.partition, offset=offset))


def partition_indexes(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    asyncio.run(run(parse_options(), StopSignal()))
