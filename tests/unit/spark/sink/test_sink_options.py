"""The options of the sink, and the security settings of the session."""

import pytest

from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.records import Codec
from kafscale.spark.sink.options import parse
from kafscale.spark.sink.security import security_of

SERVERS = {"kafka.bootstrap.servers": "localhost"}


def test_names_are_case_insensitive_and_options_of_spark_ignored():
    parsed = parse(
        {
            "KAFKA.Bootstrap.Servers": "a:1, b",
            "TOPIC": "orders",
            "kafka.compression.type": "ZSTD",
            "kafka.transaction.timeout.ms": "900000",
            "transactionalidprefix": "billing",
            "includeHeaders": "true",
            "checkpointLocation": "/checkpoint",
        }
    )
    assert [str(each) for each in parsed.bootstrap] == ["a:1", "b:9092"]
    assert (parsed.topic, parsed.codec, parsed.timeout_ms, parsed.prefix) == (
        "orders",
        Codec.ZSTD,
        900_000,
        "billing",
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topic": "orders"}, "set kafka.bootstrap.servers"),
        (SERVERS | {"topic": " "}, "topic is empty"),
        (SERVERS | {"kafka.compression.type": "lzma"}, "must be one of none, gzip"),
        (SERVERS | {"kafka.transaction.timeout.ms": "1m"}, "must be a number of milliseconds"),
        (SERVERS | {"kafka.transaction.timeout.ms": "\uff13"}, "must be a number of milliseconds"),
        (SERVERS | {"kafka.transaction.timeout.ms": "0"}, "from 1 to 2147483647: '0'"),
        (SERVERS | {"kafka.transaction.timeout.ms": "2147483648"}, "from 1 to 2147483647"),
        (SERVERS | {"transactionalIdPrefix": ""}, "must not be empty"),
        (SERVERS | {"transactionalIdPrefix": "é" * 494}, "more than 987 bytes"),
        (SERVERS | {"topics": "orders"}, "did you mean topic?"),
        (SERVERS | {"subscribe": "orders"}, "unknown option subscribe; known: "),
        (SERVERS | {"path": "/data"}, "set topic instead"),
        (SERVERS | {"kafka.acks": "1"}, "the sink fixes this setting"),
        (SERVERS | {"kafka.sasl.jaas.config": "…"}, "spark.kafscale.client.securityProtocol"),
    ],
)
def test_invalid_options_are_rejected(options, problem):
    with pytest.raises(InvalidRequestError) as caught:
        parse(options)
    assert problem in str(caught.value)


def test_security_is_that_of_the_session():
    own = {
        "s3.endpoint": "http://localhost:9000",
        "client.securityProtocol": "sasl_ssl",
        "client.username": "billing",
        "client.password": "secret",
        "client.tls.caFile": "/ca.pem",
        "client.tls.verifyHostname": "false",
    }
    security = security_of(own)
    assert (security.protocol, security.username) == ("SASL_SSL", "billing")
    assert (security.password, security.tls.ca_file) == ("secret", "/ca.pem")
    assert not security.tls.verify_hostname
    assert "secret" not in repr(security)
    assert security_of({}).protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"client.user": "billing"}, "unknown setting spark.kafscale.client.user"),
        ({"client.securityProtocol": "TLS"}, "spark.kafscale.client.securityProtocol"),
        (
            {"client.securityProtocol": "SASL_SSL"},
            (
                "SASL_SSL with SCRAM-SHA-512 needs a user name and a password: set"
                " spark.kafscale.client.username and spark.kafscale.client.password in the session"
            ),
        ),
        (
            {"client.securityProtocol": "SASL_SSL", "client.saslMechanism": "OAUTHBEARER"},
            "needs a token: set spark.kafscale.client.tokenFile in the session",
        ),
    ],
)
def test_invalid_security_is_rejected(own, problem):
    with pytest.raises(ConfigError) as caught:
        security_of(own)
    assert problem in str(caught.value)
