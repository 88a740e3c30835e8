"""Sessions that end: who logs in again in time goes on on the same connection (KIP-368)."""

import asyncio
import json
import time
from collections import Counter

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from kafscale.protocol.error_codes import ErrorCode
from services import java
from services.login_wire import plain_token
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
    """How often somebody has logged in, by connection."""
    lines = broker.logged(since_bytes).splitlines()
    events = [json.loads(line) for line in lines if '"logged in"' in line]
    return Counter(event["client"] for event in events if event["mechanism"] == mechanism)


def test_librdkafka_goes_on_through_many_sessions(broker):
    ways = (broker.plain(ADMIN), broker.scram(ADMIN), broker.token(ADMIN))
    since_bytes = broker.log.stat().st_size
    errors = []
    producers = [Producer(way.librdkafka() | {"error_cb": errors.append}) for way in ways]

    def are_through():
        for producer in producers:
            producer.produce("sessions", b"", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(10) == 0
        counts = [logins(broker, way.mechanism, since_bytes) for way in ways]
        return all(max(count.values(), default=0) > SESSIONS for count in counts)

    wait_until(are_through, "logins on one connection of each", seconds_max=30, seen=errors)
    assert [error for error in errors if error is not None] == []


@pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
def test_java_goes_on_through_many_sessions(broker, tmp_path):
    since_bytes = broker.log.stat().st_size
    said = java.run(
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
    assert "60 records sent" in said
    # It sends for six seconds; a slow machine has it log in late, but never too late.
    assert max(logins(broker, "SCRAM-SHA-512", since_bytes).values()) >= 3


def test_aiokafka_which_does_not_log_in_again_comes_back(broker):
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


def test_who_does_not_log_in_again_is_cut_off(wire):
    began = time.monotonic()
    assert 0 < wire.try_in(ADMIN, password_of(ADMIN)).session_lifetime_ms <= SESSION_MS
    assert wire.metadata().brokers
    time.sleep(max(0, began + SESSION_MS / 1000 + 0.1 - time.monotonic()))
    with pytest.raises(ConnectionError):
        wire.metadata()


def test_a_session_that_has_ended_can_be_begun_again(wire):
    wire.try_in(ADMIN, password_of(ADMIN))
    time.sleep(SESSION_MS / 1000 + 0.1)
    again = wire.try_in(ADMIN, password_of(ADMIN))
    assert (again.error_code, again.session_lifetime_ms) == (0, SESSION_MS)
    assert wire.metadata().brokers


def test_nobody_becomes_somebody_else(wire):
    wire.try_in("alice", password_of("alice"))
    failed = wire.try_in(ADMIN, password_of(ADMIN))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_hung_up()


def test_nobody_changes_the_mechanism(wire):
    wire.try_in(ADMIN, password_of(ADMIN))
    assert wire.handshake("SCRAM-SHA-512").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_wrong_password_ends_a_session_that_was_good(wire):
    wire.try_in("alice", password_of("alice"))
    assert wire.handshake("PLAIN").error_code == 0
    failed = wire.authenticate(plain_token("alice", password_of("nobody")))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_hung_up()
