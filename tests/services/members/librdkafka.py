"""A group member on librdkafka: it commits after every batch and before every revocation.

The strategy is `consumer` for KIP-848, else the value of `partition.assignment.strategy`.
"""

import time
from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

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

RETRIABLE = {
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
"""Commit errors after which the same commit may succeed."""


class Member:
    """A consumer with the offsets that it has read and not yet committed."""

    def __init__(self, options: MemberOptions) -> None:
        self._topic = options.topic
        self._batch: dict[int, list[int]] = defaultdict(list)
        self._consumer = Consumer(settings(options))
        self._consumer.subscribe(
            [options.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def run(self, stop_signal: StopSignal) -> None:
        while not stop_signal.is_set:
            message = self._consumer.poll(0.05)
            if message is None:
                self._finish_batch()
            elif (error := message.error()) is not None:
                emit(Failed(error=error.str()))
                if error.code() == KafkaError._FATAL:
                    raise SystemExit(1)
            else:
                self._batch[message.partition()].append(message.offset())
                if sum(map(len, self._batch.values())) >= BATCH_RECORDS_MAX:
                    self._finish_batch()
        self._finish_batch()
        self._consumer.close()
        emit(Ended())

    def _finish_batch(self) -> None:
        for partition, offsets in self._batch.items():
            emit(Read(partition=partition, first=offsets[0], end=offsets[-1] + 1))
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
                if error.code() not in RETRIABLE or time.monotonic() > deadline:
                    emit(CommitRejected(error=error.name()))
                    return
                time.sleep(0.05)
            else:
                break
        for each in committed:
            if each.error is None:
                emit(Committed(partition=each.partition, offset=each.offset))
            else:
                emit(CommitRejected(error=each.error.name()))

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        emit(Assigned(partitions=partition_indexes(partitions)))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._finish_batch()
        emit(Revoked(partitions=partition_indexes(partitions)))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._batch.clear()
        emit(Lost(partitions=partition_indexes(partitions)))


def settings(options: MemberOptions) -> dict[str, Any]:
    common = {
        "bootstrap.servers": options.address,
        "group.id": options.group,
        "enable.auto.commit": False,
        "auto.offset.reset": options.reset,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 300,
    }
    if options.instance_id is not None:
        common["group.instance.id"] = options.instance_id
    if options.strategy == "consumer":
        return common | {"group.protocol": "consumer"}
    return common | {
        "partition.assignment.strategy": options.strategy,
        "session.timeout.ms": options.session_timeout_ms,
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
    }


def partition_indexes(partitions: list[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(each.partition for each in partitions))


if __name__ == "__main__":
    Member(parse_options()).run(StopSignal())
