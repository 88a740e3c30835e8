"""A group member on kafka-python: it commits every batch before it polls for the next."""

from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError

from services.member_events import (
    Assigned,
    CommitRejected,
    Committed,
    Ended,
    Failed,
    Lost,
    Read,
    Revoked,
)
from services.members.options import (
    BATCH_RECORDS_MAX,
    COMMIT_S_MAX,
    MemberOptions,
    StopSignal,
    emit,
    parse_options,
)

STRATEGIES = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    """Reports assignments and revocations; everything is committed when it is called."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        emit(Assigned(partitions=partition_indexes(assigned)))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        emit(Revoked(partitions=partition_indexes(revoked)))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        emit(Lost(partitions=partition_indexes(lost)))


def run(options: MemberOptions, stop_signal: StopSignal) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=options.address,
        group_id=options.group,
        group_instance_id=options.instance_id,
        partition_assignment_strategy=[STRATEGIES[options.strategy]],
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        auto_offset_reset=options.reset,
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
        max_poll_records=BATCH_RECORDS_MAX,
        reconnect_backoff_max_ms=300,
    )
    consumer.subscribe([options.topic], listener=Listener())
    while not stop_signal.is_set:
        process_batch(consumer, consumer.poll(timeout_ms=50))
    consumer.close()
    emit(Ended())


def process_batch(consumer: KafkaConsumer, batch: dict[TopicPartition, list[Any]]) -> None:
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
    offsets = {
        topic_partition: OffsetAndMetadata(offset, "", -1)
        for topic_partition, offset in done.items()
    }
    try:
        consumer.commit(offsets, timeout_ms=COMMIT_S_MAX * 1000)
    except FencedInstanceIdError as error:
        emit(Failed(error=error.description))
        raise SystemExit(1) from error
    except KafkaError as error:
        emit(CommitRejected(error=type(error).__name__))
        return
    for topic_partition, offset in done.items():
        emit(Committed(partition=topic_partition.partition, offset=offset))


def partition_indexes(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    run(parse_options(), StopSignal())
