"""The file of `--command-config`: Java properties, and the settings that they change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.command_config import apply_properties, parse_properties
from kafscale.config.sections.client import Client
from kafscale.config.sections.security import ClientTls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1 2  \n", {"a": "1 2  "}),
        ("a==1", {"a": "=1"}),
        ("a\nb=", {"a": "", "b": ""}),
        ("# a=1\n  ! b=2\n\n \t\nc=#3", {"c": "#3"}),
        ("a=1\\\n   2\\\n 3\nb=4", {"a": "123", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=1\\", {"a": "1"}),
        (r"a\ b\:c\=d=e", {"a b:c=d": "e"}),
        (r"a=\t\n\u00e9\"\x", {"a": '\t\né"x'}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_lines_are_parsed_as_by_java(text, expected):
    assert parse_properties(text) == expected


def test_invalid_escape_is_rejected():
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(r"a=\u12")


def escaped(text):
    """As `Properties.store` writes it."""
    return "".join(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else each for each in text)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_escaped_properties_round_trip(expected):
    text = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in expected.items())
    assert parse_properties(text) == expected


@given(st.text())
def test_any_text_is_parsed_or_rejected(text):
    try:
        parse_properties(text)
    except ValueError as error:
        assert "hexadecimal" in str(error)  # noqa: PT017


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def test_java_properties_are_applied():
    settings = apply_properties(
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
        tls=ClientTls(ca_file="ca.pem", cert_file="alice.pem", verify_hostname=False),
    )


def test_librdkafka_properties_are_applied():
    settings = apply_properties(
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
        ca_file="ca.pem", cert_file="alice.crt", key_file="alice.key", verify_hostname=True
    )


def test_other_settings_are_kept():
    before = Client(username="bob", password="old", tls=ClientTls(ca_file="ca.pem"))  # noqa: S106
    after = apply_properties(before, {"sasl.password": "new"})
    assert (after.username, after.password, after.tls) == ("bob", "new", before.tls)


def test_token_file_url_is_applied():
    settings = apply_properties(
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
def test_login_module_options_may_be_quoted_or_not(options):
    settings = apply_properties(Client(), {"sasl.jaas.config": f" {SCRAM} REQUIRED  {options} ; "})
    assert (settings.username, settings.password) == ("alice", "secret")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("security.protocol", "TLS", "not one of PLAINTEXT, SSL"),
        ("sasl.mechanism", "GSSAPI", "not one of PLAIN"),
        ("sasl.jaas.config", "Krb5LoginModule required useTicketCache=true;", "is not supported"),
        ("sasl.jaas.config", f'{OAUTH} required unsecuredLoginStringClaim_sub="a";', "file:///"),
        (
            "sasl.jaas.config",
            f'{SCRAM} required username="alice" password="hidden"',
            "expected the form",
        ),
        ("sasl.oauthbearer.token.endpoint.url", "https://idp/token", "file:///"),
        ("ssl.truststore.type", "JKS", "PEM"),
        ("ssl.truststore.location", "ca.jks", r"ssl\.truststore\.type=PEM"),
        ("ssl.keystore.location", "alice.p12", r"ssl\.keystore\.type=PEM"),
        ("ssl.key.password", "hidden", "not supported"),
        ("ssl.enabled.protocols", "TLSv1.3", "not supported"),
        ("enable.ssl.certificate.verification", "false", "not supported"),
        ("ssl.endpoint.identification.algorithm", "ldaps", "neither https nor none"),
    ],
)
def test_unsupported_properties_are_rejected_without_showing_secrets(key, value, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        apply_properties(Client(), {key: value})
    assert str(caught.value).startswith(key)
    assert "hidden" not in str(caught.value)
