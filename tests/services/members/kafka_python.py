"""A member of a group on kafka-python: it commits every batch before it polls for the next."""

from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError

from services.member_events import Assigned, Committed, Ended, Failed, Lost, Read, Refused, Revoked
from services.members.orders import BATCH_RECORDS_MAX, COMMIT_S_MAX, Orders, Shift, orders, tell

STRATEGIES = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    """Tells what is assigned and revoked; nothing is ever uncommitted when it is called."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        tell(Assigned(partitions=numbers(assigned)))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        tell(Revoked(partitions=numbers(revoked)))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        tell(Lost(partitions=numbers(lost)))


def work(told: Orders, shift: Shift) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=told.address,
        group_id=told.group,
        group_instance_id=told.instance_id,
        partition_assignment_strategy=[STRATEGIES[told.strategy]],
        session_timeout_ms=told.session_timeout_ms,
        heartbeat_interval_ms=told.heartbeat_interval_ms,
        auto_offset_reset=told.reset,
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
        max_poll_records=BATCH_RECORDS_MAX,
        reconnect_backoff_max_ms=300,
    )
    consumer.subscribe([told.topic], listener=Listener())
    while not shift.is_over:
        finish(consumer, consumer.poll(timeout_ms=50))
    consumer.close()
    tell(Ended())


def finish(consumer: KafkaConsumer, batch: dict[TopicPartition, list[Any]]) -> None:
    done = {place: records[-1].offset + 1 for place, records in batch.items()}
    for place, records in batch.items():
        tell(Read(partition=place.partition, first=records[0].offset, end=done[place]))
    if not done:
        return
    offsets = {place: OffsetAndMetadata(offset, "", -1) for place, offset in done.items()}
    try:
        consumer.commit(offsets, timeout_ms=COMMIT_S_MAX * 1000)
    except FencedInstanceIdError as error:
        tell(Failed(error=error.description))
        raise SystemExit(1) from error
    except KafkaError as error:
        tell(Refused(error=type(error).__name__))
        return
    for place, offset in done.items():
        tell(Committed(partition=place.partition, offset=offset))


def numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    work(orders(), Shift())
