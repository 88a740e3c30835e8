r"""`--command-config`: how to talk to brokers, from a file such as Kafka's own tools take.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
      username="alice" password="secret";
    ssl.truststore.type=PEM
    ssl.truststore.location=ca.pem

The names that librdkafka has for these are understood as well. The laws: what the file says wins
over the settings; a key about security that would not be heeded is refused, since whoever wrote it
counts on it; other keys of clients may stand there.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kafscale.cli.connection.jaas import parse_jaas
from kafscale.config.sections.client import Client
from kafscale.config.sections.security import MECHANISMS, PROTOCOLS

_ABOUT_SECURITY: Final = ("security.", "sasl.", "ssl.", "enable.ssl.")
_STORES: Final = ("ssl.truststore", "ssl.keystore")
_TO_PEM: Final = "Java's own formats cannot be read here; write it as PEM"

Changes = dict[str, Any]


def applied(settings: Client, properties: Mapping[str, str]) -> Client:
    """The settings, changed by what the properties say; `ValueError` for what they cannot mean."""
    of_client: Changes = {}
    of_tls: Changes = {}
    for key, text in properties.items():
        value = text.strip()
        try:
            if key in _CLIENT:
                of_client |= _CLIENT[key](value)
            elif key in _TLS:
                of_tls |= _TLS[key](value)
            else:
                _check_harmless(key)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    for store in _STORES:
        if f"{store}.location" in properties and f"{store}.type" not in properties:
            raise ValueError(f"{store}.location: {_TO_PEM}, and set {store}.type=PEM")
    return replace(settings, **of_client, tls=replace(settings.tls, **of_tls))


def _check_harmless(key: str) -> None:
    if key.startswith(_ABOUT_SECURITY):
        raise ValueError("it is not understood here; remove it if it is not needed")


def _text(field: str) -> Callable[[str], Changes]:
    return lambda value: {field: value}


def _choice(field: str, choices: tuple[str, ...]) -> Callable[[str], Changes]:
    def read(value: str) -> Changes:
        if value.upper() not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return {field: value.upper()}

    return read


def _token_file(value: str) -> Changes:
    """Kafka's clients take a token from a file where its address begins with `file`."""
    address = urlsplit(value)
    if address.scheme != "file":
        raise ValueError("only the token in a file can be used, as file:///path/of/token")
    return {"token_file": unquote(address.path)}


def _pem(value: str) -> Changes:
    if value.upper() != "PEM":
        raise ValueError(_TO_PEM)
    return {}


def _check_host(value: str) -> Changes:
    if value.lower() not in {"https", "none", ""}:
        raise ValueError(f"{value!r} is neither https nor none")
    return {"check_host": value.lower() == "https"}


_CLIENT: Final[Mapping[str, Callable[[str], Changes]]] = {
    "security.protocol": _choice("security_protocol", PROTOCOLS),
    "sasl.mechanism": _choice("sasl_mechanism", MECHANISMS),
    "sasl.mechanisms": _choice("sasl_mechanism", MECHANISMS),
    "sasl.jaas.config": parse_jaas,
    "sasl.username": _text("username"),
    "sasl.password": _text("password"),
    "sasl.oauthbearer.token.endpoint.url": _token_file,
}
_TLS: Final[Mapping[str, Callable[[str], Changes]]] = {
    "ssl.truststore.type": _pem,
    "ssl.truststore.location": _text("ca_file"),
    "ssl.ca.location": _text("ca_file"),
    "ssl.keystore.type": _pem,
    "ssl.keystore.location": _text("cert_file"),
    "ssl.certificate.location": _text("cert_file"),
    "ssl.key.location": _text("key_file"),
    "ssl.endpoint.identification.algorithm": _check_host,
}
