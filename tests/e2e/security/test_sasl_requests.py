"""SASL requests that current clients do not send: old versions, wrong order, repetitions."""

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
from services.sasl_wire import plain_token
from services.secured_broker import MECHANISMS, password_of
from services.secured_wire import SecuredWire

pytestmark = pytest.mark.timeout(40)

ALICE = plain_token("alice", password_of("alice"))
WRONG = plain_token("alice", password_of("mallory"))


@pytest.fixture
def wire(secured):
    with SecuredWire(secured.plain("alice")) as connected:
        yield connected


def test_raw_token_authenticates(wire, own_topic):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.send_frame(ALICE)
    assert bytes(wire.receive_frame()) == b""
    request = CreateTopicsRequest([TopicToCreate(own_topic, 1, -1)])
    assert wire.call(CREATE_TOPICS, 5, request).topics[0].error_code == 0


def test_wrong_raw_token_closes_the_connection(wire):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.send_frame(WRONG)
    assert wire.is_closed_by_broker()


def test_request_instead_of_a_raw_token_closes_the_connection(wire):
    assert wire.handshake("PLAIN", version=0).error_code == 0
    wire.send(API_VERSIONS, 0, ApiVersionsRequest())
    assert wire.is_closed_by_broker()


@pytest.mark.parametrize("version", SASL_AUTHENTICATE.versions)
def test_all_versions_of_sasl_authenticate_work(wire, version):
    assert wire.handshake("PLAIN").error_code == 0
    assert wire.authenticate(ALICE, version).error_code == 0
    assert wire.metadata().brokers


@pytest.mark.parametrize("mechanism", ["plain", "scram"])
def test_old_client_authenticates_with_raw_tokens(secured, own_topic, mechanism):
    """kafka-python uses SaslHandshake v0 for brokers of version 0.10.2."""
    config = getattr(secured, mechanism)("alice")
    producer = KafkaProducer(**config.kafka_python(), api_version=(0, 10, 2))
    try:
        assert producer.send(own_topic, b"from long ago").get(10).offset == 0
    finally:
        producer.close(timeout=5)


def test_unsupported_mechanism_lists_the_enabled_ones(wire):
    refused = wire.handshake("GSSAPI")
    assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(refused.mechanisms) == set(MECHANISMS)
    assert wire.try_log_in("alice", password_of("alice")).error_code == 0


def test_token_without_handshake_is_an_illegal_state(wire):
    assert wire.authenticate(ALICE).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_connection_is_closed_after_a_failed_login(wire):
    failed = wire.try_log_in("alice", password_of("mallory"))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "Invalid username or password" in failed.error_message
    assert wire.is_closed_by_broker()


def test_request_pipelined_after_a_failed_login_is_not_served(wire):
    """The client does not wait for the SaslAuthenticate response."""
    assert wire.handshake("PLAIN").error_code == 0
    wire.send(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(WRONG))
    wire.send(METADATA, 9, MetadataRequest(topics=None))
    _, failed = wire.receive(SASL_AUTHENTICATE, 2)
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed_by_broker()


def test_authorization_id_of_another_user_is_rejected(wire):
    """PLAIN has a field for it."""
    assert wire.handshake("PLAIN").error_code == 0
    assert wire.authenticate(b"admin" + ALICE).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_plaintext_listener_offers_no_mechanism(secured):
    with SecuredWire(secured.anonymous()) as wire:
        response = wire.handshake("PLAIN")
        assert (response.error_code, response.mechanisms) == (33, [])
        assert wire.metadata().brokers


def test_session_lifetime_is_that_of_the_token(secured, wire):
    assert wire.try_log_in("alice", password_of("alice")).session_lifetime_ms == 0
    config = secured.token("alice", lasts_s=60)
    with SecuredWire(config) as tokened:
        assert tokened.handshake("OAUTHBEARER").error_code == 0
        passed = tokened.authenticate(f"n,,\x01auth=Bearer {config.token()}\x01\x01".encode())
        assert 0 < passed.session_lifetime_ms <= 60_000
