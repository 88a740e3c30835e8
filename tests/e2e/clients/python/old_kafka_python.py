"""A client of kafka-python 1, which runs with the packages of that version.

    old_kafka_python.py <broker version> produce <address> <topic> <count> <codec>...
    old_kafka_python.py <broker version> consume=<group> <address> <topic> <count> <codec>...

It produces records to the topic of each codec, or prints the values of that many records of all
these topics, as a group member, and commits.
"""

import sys

from kafka import KafkaConsumer, KafkaProducer

SECONDS_MAX = 20


def produce(settings, topic, count, codecs):
    for codec in codecs:
        compression = None if codec == "none" else codec
        producer = KafkaProducer(acks=-1, linger_ms=50, compression_type=compression, **settings)
        values = [f"{codec} {number}".encode() for number in range(count)]
        sent = [producer.send(f"{topic}-{codec}", value, b"key") for value in values]
        offsets = [each.get(SECONDS_MAX).offset for each in sent]
        assert offsets == list(range(offsets[0], offsets[0] + count))
        producer.close()


def consume(settings, group, topic, count, codecs):
    consumer = KafkaConsumer(
        *(f"{topic}-{codec}" for codec in codecs),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS_MAX * 1000,
        **settings,
    )
    for number, record in enumerate(consumer, 1):
        sys.stdout.write(record.value.decode() + "\n")
        if number == count:
            break
    consumer.commit()
    consumer.close()


def main(broker_version, command, address, topic, count, *codecs):
    settings = {"bootstrap_servers": address, "api_version": broker_version}
    if command == "produce":
        produce(settings, topic, int(count), codecs)
    else:
        consume(settings, command.removeprefix("consume="), topic, int(count), codecs)


main(*sys.argv[1:])
