"""Client libraries that produce and consume with a `ClientConfig`, and their login errors.

    values = LIBRDKAFKA.read(config, topic, 3)
    assert "Invalid username or password" in LIBRDKAFKA.login_error(wrong, [...])

Each is used with its defaults. Nothing here retries: an error that a client raises is an error.
"""

import asyncio
import gc
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from services import kcat
from services.client_config import ClientConfig

WAIT_S = 20
LOGIN_ERROR_S_MAX = 5


class SecuredClient(Protocol):
    """One kind of client."""

    name: str

    def send(self, config: ClientConfig, topic: str, values: list[bytes]) -> None: ...

    def read(self, config: ClientConfig, topic: str, count: int) -> list[bytes]:
        """Read the first records of a topic, as the only member of a new group."""
        ...


class Librdkafka:
    name = "librdkafka"

    def send(self, config: ClientConfig, topic: str, values: list[bytes]) -> None:
        errors: list[KafkaError | None] = []
        producer = Producer(config.librdkafka())
        for value in values:
            producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(WAIT_S) == 0
        for error in errors:
            if error is not None:
                raise KafkaException(error)

    def read(self, config: ClientConfig, topic: str, count: int) -> list[bytes]:
        settings = {"group.id": new_group(config.user), "auto.offset.reset": "earliest"}
        consumer = Consumer(config.librdkafka() | settings)
        try:
            consumer.subscribe([topic])
            return [_value(consumer) for _ in range(count)]
        finally:
            consumer.close()

    def login_error(self, config: ClientConfig, awaited: Sequence[str]) -> str:
        """What it reports when it cannot log in, until that contains one of the awaited texts."""
        messages: list[str] = []
        producer = Producer(
            config.librdkafka()
            | {"error_cb": lambda error: messages.append(f"{error.name()}: {error}")}
        )
        deadline = time.monotonic() + LOGIN_ERROR_S_MAX
        while time.monotonic() < deadline:
            producer.poll(0.05)
            if any(words in line for words in awaited for line in messages):
                break
        return "\n".join(messages)


class AioKafka:
    name = "aiokafka"

    def send(self, config: ClientConfig, topic: str, values: list[bytes]) -> None:
        async def sending() -> None:
            producer = AIOKafkaProducer(**config.aiokafka())
            await producer.start()
            try:
                for value in values:
                    await producer.send_and_wait(topic, value)
            finally:
                await producer.stop()

        asyncio.run(asyncio.wait_for(sending(), WAIT_S))

    def read(self, config: ClientConfig, topic: str, count: int) -> list[bytes]:
        async def reading() -> list[bytes]:
            consumer = AIOKafkaConsumer(
                topic,
                **config.aiokafka(),
                group_id=new_group(config.user),
                auto_offset_reset="earliest",
            )
            await consumer.start()
            try:
                return [(await consumer.getone()).value for _ in range(count)]
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(reading(), WAIT_S))

    def login_error(self, config: ClientConfig) -> str:
        """What it reports when it cannot log in; it does not retry."""

        async def trying() -> None:
            producer = AIOKafkaProducer(**config.aiokafka())
            try:
                await producer.start()
            finally:
                await producer.stop()

        with _logged("aiokafka") as lines, warnings.catch_warnings():
            # aiokafka does not close sockets of failed logins.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                asyncio.run(asyncio.wait_for(trying(), LOGIN_ERROR_S_MAX))
            except (AioKafkaError, TimeoutError) as error:
                lines.append(f"{type(error).__name__}: {error}")
            gc.collect()
        return "\n".join(lines)


class KafkaPython:
    name = "kafka-python"

    def send(self, config: ClientConfig, topic: str, values: list[bytes]) -> None:
        producer = KafkaProducer(**config.kafka_python())
        try:
            for sent in [producer.send(topic, value) for value in values]:
                sent.get(WAIT_S)
        finally:
            producer.close(timeout=5)

    def read(self, config: ClientConfig, topic: str, count: int) -> list[bytes]:
        consumer = KafkaConsumer(
            topic,
            **config.kafka_python(),
            group_id=new_group(config.user),
            auto_offset_reset="earliest",
            consumer_timeout_ms=WAIT_S * 1000,
        )
        try:
            return [record.value for _, record in zip(range(count), consumer, strict=False)]
        finally:
            consumer.close()


class Kcat:
    name = "kcat"

    def send(self, config: ClientConfig, topic: str, values: list[bytes]) -> None:
        kcat.run(
            *self._settings(config), "-P", "-t", topic, stdin=b"".join(v + b"\n" for v in values)
        )

    def read(self, config: ClientConfig, topic: str, count: int) -> list[bytes]:
        requested = ("-C", "-t", topic, "-o", "beginning", "-c", str(count), "-q")
        return kcat.run(*self._settings(config), *requested).splitlines()

    def _settings(self, config: ClientConfig) -> list[str]:
        settings = config.librdkafka()
        del settings["log_level"]
        assert "oauth_cb" not in settings, "kcat has no tokens"
        return [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]


LIBRDKAFKA = Librdkafka()
AIOKAFKA = AioKafka()
CLIENTS: tuple[SecuredClient, ...] = (LIBRDKAFKA, AIOKAFKA, KafkaPython(), Kcat())


def new_group(user: str) -> str:
    """A new group whose name has the prefix that the user's ACLs allow."""
    return f"{user}-{uuid4()}"


def _value(consumer: Consumer) -> bytes:
    message = consumer.poll(WAIT_S)
    assert message is not None, f"no record within {WAIT_S} s"
    if message.error() is not None:
        raise KafkaException(message.error())
    value = message.value()
    assert isinstance(value, bytes)
    return value


@contextmanager
def _logged(name: str) -> Iterator[list[str]]:
    lines: list[str] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger(name), RecordingHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
