"""Reauthentication (KIP-368): a client that logs in again in time keeps its connection."""

import asyncio
import json
import time
from collections import Counter

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from kafscale.protocol.error_codes import ErrorCode
from services import java
from services.sasl_wire import plain_token
from services.secured_broker import ADMIN, SecuredBroker, password_of
from services.secured_wire import SecuredWire
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

SESSION_MS = 1000
SESSIONS = 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"sasl_connections_max_reauth_ms": str(SESSION_MS)}
    directory = tmp_path_factory.mktemp("sessions")
    with SecuredBroker(directory, users=("alice",), **settings) as running:
        running.add_scram_users(ADMIN)
        yield running


@pytest.fixture
def wire(broker):
    with SecuredWire(broker.plain(ADMIN)) as connected:
        yield connected


def logins(broker, mechanism, since_bytes=0):
    """The number of logins by connection."""
    lines = broker.logged(since_bytes).splitlines()
    events = [json.loads(line) for line in lines if '"logged in"' in line]
    return Counter(event["client"] for event in events if event["mechanism"] == mechanism)


def test_librdkafka_reauthenticates_on_one_connection(broker):
    configs = (broker.plain(ADMIN), broker.scram(ADMIN), broker.token(ADMIN))
    since_bytes = broker.log.stat().st_size
    errors = []
    producers = [Producer(config.librdkafka() | {"error_cb": errors.append}) for config in configs]

    def have_reauthenticated():
        for producer in producers:
            producer.produce("sessions", b"", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(10) == 0
        counts = [logins(broker, config.mechanism, since_bytes) for config in configs]
        return all(max(count.values(), default=0) > SESSIONS for count in counts)

    wait_until(
        have_reauthenticated, "logins on one connection of each", seconds_max=30, seen=errors
    )
    assert [error for error in errors if error is not None] == []


@pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
def test_java_reauthenticates_on_one_connection(broker, tmp_path):
    since_bytes = broker.log.stat().st_size
    output = java.run(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        "sessions",
        "--num-records",
        "60",
        "--record-size",
        "10",
        "--throughput",
        "10",
        "--producer.config",
        str(broker.scram(ADMIN).java(tmp_path)),
    )
    assert "60 records sent" in output
    # It sends for six seconds; on a slow machine it logs in later, but never too late.
    assert max(logins(broker, "SCRAM-SHA-512", since_bytes).values()) >= 3


@pytest.mark.long
def test_aiokafka_reconnects_when_its_session_ends(broker):
    since_bytes = broker.log.stat().st_size

    async def sending():
        producer = AIOKafkaProducer(**broker.scram(ADMIN).aiokafka())
        await producer.start()
        try:
            while len(logins(broker, "SCRAM-SHA-512", since_bytes)) <= SESSIONS:
                await producer.send_and_wait("sessions", b"")
                await asyncio.sleep(0.05)
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(sending(), 30))


def test_expired_session_closes_the_connection(wire):
    assert 0 < wire.try_log_in(ADMIN, password_of(ADMIN)).session_lifetime_ms <= SESSION_MS
    began = time.monotonic()
    assert wire.metadata().brokers
    time.sleep(max(0, began + SESSION_MS / 1000 + 0.1 - time.monotonic()))
    with pytest.raises(ConnectionError):
        wire.metadata()


def test_expired_session_can_reauthenticate(wire):
    wire.try_log_in(ADMIN, password_of(ADMIN))
    time.sleep(SESSION_MS / 1000 + 0.1)
    again = wire.try_log_in(ADMIN, password_of(ADMIN))
    assert (again.error_code, again.session_lifetime_ms) == (0, SESSION_MS)
    assert wire.metadata().brokers


def test_reauthentication_cannot_change_the_principal(wire):
    wire.try_log_in("alice", password_of("alice"))
    failed = wire.try_log_in(ADMIN, password_of(ADMIN))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed_by_broker()


def test_reauthentication_cannot_change_the_mechanism(wire):
    wire.try_log_in(ADMIN, password_of(ADMIN))
    assert wire.handshake("SCRAM-SHA-512").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_failed_reauthentication_closes_the_connection(wire):
    wire.try_log_in("alice", password_of("alice"))
    assert wire.handshake("PLAIN").error_code == 0
    failed = wire.authenticate(plain_token("alice", password_of("mallory")))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed_by_broker()
