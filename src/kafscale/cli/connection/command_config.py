r"""`--command-config`: client settings from a properties file, as Kafka's own tools read it.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
      username="alice" password="secret";
    ssl.truststore.type=PEM
    ssl.truststore.location=ca.pem

The equivalent librdkafka names are accepted as well. The file overrides the settings. An unknown
key about security is an error, because ignoring it could weaken security; other unknown keys are
ignored.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kafscale.cli.connection.jaas import parse_jaas
from kafscale.config.sections.client import Client
from kafscale.config.sections.security import MECHANISMS, PROTOCOLS

_SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.")
_STORES: Final = ("ssl.truststore", "ssl.keystore")
_TO_PEM: Final = "JKS and PKCS12 are not supported; convert it to PEM"

Changes = dict[str, Any]


def apply_properties(settings: Client, properties: Mapping[str, str]) -> Client:
    """Return the settings with the properties applied; raise `ValueError` for invalid ones."""
    client_changes: Changes = {}
    tls_changes: Changes = {}
    for key, text in properties.items():
        value = text.strip()
        try:
            if key in _CLIENT:
                client_changes |= _CLIENT[key](value)
            elif key in _TLS:
                tls_changes |= _TLS[key](value)
            else:
                _check_ignorable(key)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    for store in _STORES:
        if f"{store}.location" in properties and f"{store}.type" not in properties:
            raise ValueError(f"{store}.location: {_TO_PEM}, and set {store}.type=PEM")
    return replace(settings, **client_changes, tls=replace(settings.tls, **tls_changes))


def _check_ignorable(key: str) -> None:
    if key.startswith(_SECURITY_PREFIXES):
        raise ValueError("this property is not supported; remove it if it is not needed")


def _text(field: str) -> Callable[[str], Changes]:
    return lambda value: {field: value}


def _choice(field: str, choices: tuple[str, ...]) -> Callable[[str], Changes]:
    def read(value: str) -> Changes:
        if value.upper() not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return {field: value.upper()}

    return read


def _token_file(value: str) -> Changes:
    """Kafka's clients read the token from a file if the URL has the scheme `file`."""
    address = urlsplit(value)
    if address.scheme != "file":
        raise ValueError("only a token in a file is supported: file:///path/of/token")
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
