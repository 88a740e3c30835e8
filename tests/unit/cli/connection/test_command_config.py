"""Files as Kafka's tools take them, and librdkafka, become settings of ours."""

import pytest

from kafscale.cli.connection.command_config import applied
from kafscale.config.sections.client import Client
from kafscale.config.sections.security import ClientTls

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def test_a_file_of_java_is_understood():
    settings = applied(
        Client(),
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM} required username="alice" password="pa\\"ss";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "pem",
            "ssl.keystore.location": "alice.pem",
            "ssl.endpoint.identification.algorithm": "",
            "client.id": "tool",
            "request.timeout.ms": "1000",
        },
    )
    assert settings == Client(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-256",
        username="alice",
        password='pa"ss',  # noqa: S106
        tls=ClientTls(ca_file="ca.pem", cert_file="alice.pem", check_host=False),
    )


def test_a_file_of_librdkafka_is_understood():
    settings = applied(
        Client(),
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "plain",
            "sasl.username": "alice",
            "sasl.password": "secret",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "alice.crt",
            "ssl.key.location": "alice.key",
            "ssl.endpoint.identification.algorithm": "https",
            "debug": "security",
        },
    )
    assert (settings.security_protocol, settings.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert (settings.username, settings.password) == ("alice", "secret")
    assert settings.tls == ClientTls(
        ca_file="ca.pem", cert_file="alice.crt", key_file="alice.key", check_host=True
    )


def test_what_the_file_does_not_say_stays_as_it_is_set():
    before = Client(username="bob", password="old", tls=ClientTls(ca_file="ca.pem"))  # noqa: S106
    after = applied(before, {"sasl.password": "new"})
    assert (after.username, after.password, after.tls) == ("bob", "new", before.tls)


def test_a_token_is_taken_from_a_file():
    settings = applied(
        Client(),
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} required ;",
            "sasl.oauthbearer.token.endpoint.url": "file:///var/run/my%20token",
        },
    )
    assert (settings.sasl_mechanism, settings.token_file) == ("OAUTHBEARER", "/var/run/my token")


@pytest.mark.parametrize(
    "options",
    [
        "username='alice' password='secret'",
        "username=alice password=secret",
        'serviceName="kafka"   password = "secret" username= "alice"',
    ],
)
def test_a_login_module_may_be_written_in_several_ways(options):
    settings = applied(Client(), {"sasl.jaas.config": f" {SCRAM} REQUIRED  {options} ; "})
    assert (settings.username, settings.password) == ("alice", "secret")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("security.protocol", "TLS", "not one of PLAINTEXT, SSL"),
        ("sasl.mechanism", "GSSAPI", "not one of PLAIN"),
        ("sasl.jaas.config", "Krb5LoginModule required useTicketCache=true;", "cannot be used"),
        ("sasl.jaas.config", f'{OAUTH} required unsecuredLoginStringClaim_sub="a";', "file:///"),
        (
            "sasl.jaas.config",
            f'{SCRAM} required username="alice" password="hush"',
            "not of the form",
        ),
        ("sasl.oauthbearer.token.endpoint.url", "https://idp/token", "file:///"),
        ("ssl.truststore.type", "JKS", "PEM"),
        ("ssl.truststore.location", "ca.jks", r"ssl\.truststore\.type=PEM"),
        ("ssl.keystore.location", "alice.p12", r"ssl\.keystore\.type=PEM"),
        ("ssl.key.password", "hush", "not understood"),
        ("ssl.enabled.protocols", "TLSv1.3", "not understood"),
        ("enable.ssl.certificate.verification", "false", "not understood"),
        ("ssl.endpoint.identification.algorithm", "ldaps", "neither https nor none"),
    ],
)
def test_what_would_not_be_heeded_is_refused_and_no_secret_is_shown(key, value, problem):
    with pytest.raises(ValueError, match=problem) as told:
        applied(Client(), {key: value})
    assert str(told.value).startswith(key)
    assert "hush" not in str(told.value)
