"""Logins as no client of today does them: in old versions, in the wrong order, again and again."""

import pytest
from kafka import KafkaProducer

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from services.login_wire import plain_token
from services.secured_broker import MECHANISMS, password_of
from services.secured_wire import SecuredWire

pytestmark = pytest.mark.timeout(40)

ALICE = plain_token("alice", password_of("alice"))
WRONG = plain_token("alice", password_of("nobody"))


@pytest.fixture
def wire(secured):
    with SecuredWire(secured.plain("alice")) as connected:
        yield connected


def test_bare_tokens_let_in(wire, own_topic):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.say(ALICE)
    assert bytes(wire.receive_frame()) == b""
    asked = CreateTopicsRequest([TopicToCreate(own_topic, 1, -1)])
    assert wire.call(CREATE_TOPICS, 5, asked).topics[0].error_code == 0


def test_a_bare_token_that_does_not_convince_is_answered_by_silence(wire):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.say(WRONG)
    assert wire.is_hung_up()


def test_a_request_in_place_of_a_bare_token_is_no_token(wire):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.send(API_VERSIONS, 0, ApiVersionsRequest())
    assert wire.is_hung_up()


@pytest.mark.parametrize("version", SASL_AUTHENTICATE.versions)
def test_every_version_of_the_token_lets_in(wire, version):
    assert wire.handshake("PLAIN").error_code == 0
    assert wire.authenticate(ALICE, version).error_code == 0
    assert wire.metadata().brokers


@pytest.mark.parametrize("mechanism", ["plain", "scram"])
def test_an_old_client_comes_in_by_bare_tokens(secured, own_topic, mechanism):
    """kafka-python, told that the broker is one of 2016, uses what brokers had then."""
    way = getattr(secured, mechanism)("alice")
    producer = KafkaProducer(**way.kafka_python(), api_version=(0, 10, 2))
    try:
        assert producer.send(own_topic, b"from long ago").get(10).offset == 0
    finally:
        producer.close(timeout=5)


def test_a_mechanism_that_is_not_offered_leaves_the_choice(wire):
    refused = wire.handshake("GSSAPI")
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(refused.mechanisms) == set(MECHANISMS)
    assert wire.try_in("alice", password_of("alice")).error_code == 0


def test_a_token_without_a_handshake_is_out_of_order(wire):
    assert wire.authenticate(ALICE).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_after_a_failure_nothing_more_is_answered(wire):
    failed = wire.try_in("alice", password_of("nobody"))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "Invalid username or password" in failed.error_message
    assert wire.is_hung_up()


def test_what_follows_a_failed_login_at_once_is_not_served(wire):
    """A client that does not await the answer gets no further for that."""
    assert wire.handshake("PLAIN").error_code == 0
    wire.send(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(WRONG))
    wire.send(METADATA, 9, MetadataRequest(topics=None))
    _, failed = wire.receive(SASL_AUTHENTICATE, 2)
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_hung_up()


def test_a_name_that_is_not_the_login_s_own_is_refused(wire):
    """PLAIN lets a client ask to act for somebody else."""
    assert wire.handshake("PLAIN").error_code == 0
    assert wire.authenticate(b"admin" + ALICE).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_where_nobody_logs_in_no_mechanism_is_offered(secured):
    with SecuredWire(secured.anonymous()) as wire:
        answer = wire.handshake("PLAIN")
        assert (answer.error_code, answer.mechanisms) == (33, [])
        assert wire.metadata().brokers


def test_a_session_lasts_as_long_as_its_token(secured, wire):
    assert wire.try_in("alice", password_of("alice")).session_lifetime_ms == 0
    way = secured.token("alice", lasts_s=60)
    with SecuredWire(way) as tokened:
        assert tokened.handshake("OAUTHBEARER").error_code == 0
        passed = tokened.authenticate(f"n,,\x01auth=Bearer {way.token()}\x01\x01".encode())
        assert 0 < passed.session_lifetime_ms <= 60_000
