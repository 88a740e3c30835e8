"""A member of a group on librdkafka: it commits after every batch and before it gives up anything.

The strategy is `consumer` for the new protocol, and that of `partition.assignment.strategy` else.
"""

import time
from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.member_events import Assigned, Committed, Ended, Failed, Lost, Read, Refused, Revoked
from services.members.orders import BATCH_RECORDS_MAX, COMMIT_S_MAX, Orders, Shift, orders, tell

PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
}
"""Refusals of a commit after which the same commit may succeed."""


class Member:
    """A consumer, and what it has read and not yet committed."""

    def __init__(self, told: Orders) -> None:
        self._topic = told.topic
        self._batch: dict[int, list[int]] = defaultdict(list)
        self._consumer = Consumer(settings(told))
        self._consumer.subscribe(
            [told.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def work(self, shift: Shift) -> None:
        while not shift.is_over:
            message = self._consumer.poll(0.05)
            if message is None:
                self._finish_batch()
            elif (error := message.error()) is not None:
                tell(Failed(error=error.str()))
                if error.code() == KafkaError._FATAL:
                    raise SystemExit(1)
            else:
                self._batch[message.partition()].append(message.offset())
                if sum(map(len, self._batch.values())) >= BATCH_RECORDS_MAX:
                    self._finish_batch()
        self._finish_batch()
        self._consumer.close()
        tell(Ended())

    def _finish_batch(self) -> None:
        for partition, offsets in self._batch.items():
            tell(Read(partition=partition, first=offsets[0], end=offsets[-1] + 1))
        done = {partition: offsets[-1] + 1 for partition, offsets in self._batch.items()}
        self._batch.clear()
        if done:
            self._commit([TopicPartition(self._topic, *each) for each in done.items()])

    def _commit(self, offsets: list[TopicPartition]) -> None:
        deadline = time.monotonic() + COMMIT_S_MAX
        while True:
            try:
                committed = self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as problem:
                error: KafkaError = problem.args[0]
                if error.code() not in PASSING or time.monotonic() > deadline:
                    tell(Refused(error=error.name()))
                    return
                time.sleep(0.05)
            else:
                break
        for each in committed:
            if each.error is None:
                tell(Committed(partition=each.partition, offset=each.offset))
            else:
                tell(Refused(error=each.error.name()))

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        tell(Assigned(partitions=numbers(partitions)))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._finish_batch()
        tell(Revoked(partitions=numbers(partitions)))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._batch.clear()
        tell(Lost(partitions=numbers(partitions)))


def settings(told: Orders) -> dict[str, Any]:
    common = {
        "bootstrap.servers": told.address,
        "group.id": told.group,
        "enable.auto.commit": False,
        "auto.offset.reset": told.reset,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 300,
    }
    if told.instance_id is not None:
        common["group.instance.id"] = told.instance_id
    if told.strategy == "consumer":
        return common | {"group.protocol": "consumer"}
    return common | {
        "partition.assignment.strategy": told.strategy,
        "session.timeout.ms": told.session_timeout_ms,
        "heartbeat.interval.ms": told.heartbeat_interval_ms,
    }


def numbers(partitions: list[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    Member(orders()).work(Shift())
