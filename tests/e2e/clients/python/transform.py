"""Reads a topic, and writes each record to another one in transactions, by librdkafka.

The same as `Transform.java`, which describes it.
"""

import faulthandler
import sys
from typing import NoReturn

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

INIT_S_MAX = 60
RECOVERY = {"metadata.recovery.strategy": "none"}
STUCK_S_MAX = 20
"""librdkafka 2.16 waits without end for a coordinator of the group that has left the metadata, as a
broker does that died: it keeps the broker that it knew before. Without new bootstraps, this happens
less often; else the program exits, as if by the liveness probe of a supervisor."""


def main(options: dict[str, str]) -> NoReturn:
    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
        }
        | RECOVERY
    )
    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            "transactional.id": options["transactional_id"],
            "transaction.timeout.ms": 10_000,
        }
        | RECOVERY
    )
    producer.init_transactions(INIT_S_MAX)
    consumer.subscribe([options["input"]])
    count_max, abort_every = int(options["records"]), int(options["abort_every"])
    transactions = 0
    while True:
        faulthandler.dump_traceback_later(STUCK_S_MAX, exit=True)
        messages = [each for each in consumer.consume(count_max, 0.2) if not each.error()]
        if not messages:
            continue
        transactions += 1
        try:
            write(producer, consumer, messages, options["output"])
            if transactions % abort_every == 0:
                producer.flush()
                abort(producer, consumer)
                continue
            commit(producer)
            report(f"committed {len(messages)}")
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            report(f"failed {reason}")
            if reason.fatal() or not reason.txn_requires_abort():
                raise
            abort(producer, consumer)


def write(producer: Producer, consumer: Consumer, messages: list[Message], output: str) -> None:
    producer.begin_transaction()
    for message in messages:
        producer.produce(
            output, key=message.key(), value=message.value(), partition=message.partition()
        )
    offsets = {each.partition(): each.offset() + 1 for each in messages}
    topic = messages[0].topic()
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()],
        consumer.consumer_group_metadata(),
        30,
    )


def commit(producer: Producer) -> None:
    """Commit; errors that pass by themselves are the caller's to retry."""
    while True:
        try:
            return producer.commit_transaction(30)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def abort(producer: Producer, consumer: Consumer) -> None:
    while True:
        try:
            producer.abort_transaction(30)
            break
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    report("aborted")
    for each in consumer.committed(consumer.assignment(), 30):
        offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
        consumer.seek(TopicPartition(each.topic, each.partition, offset))


def report(outcome: str) -> None:
    sys.stdout.write(f"{outcome}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
