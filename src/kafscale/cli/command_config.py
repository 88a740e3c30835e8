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

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kafscale.config.sections.client import Client
from kafscale.config.sections.security import MECHANISMS, PROTOCOLS

_SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.")
_STORES: Final = ("ssl.truststore", "ssl.keystore")
_TO_PEM: Final = "JKS and PKCS12 are not supported; convert it to PEM"

_VALUE: Final = r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | [^\s;"']+ """
_OPTION: Final = re.compile(rf"\s+ (\w+) \s*=\s* ({_VALUE})", re.VERBOSE)
_ENTRY: Final = re.compile(
    r"\s* ([\w.$]+) \s+ (?:required|requisite|sufficient|optional)"
    rf" ((?: \s+ \w+ \s*=\s* (?:{_VALUE}) )*) \s*;\s*",
    re.VERBOSE | re.IGNORECASE,
)
_PASSWORD_MODULES: Final = frozenset({"PlainLoginModule", "ScramLoginModule"})
_OAUTH_MODULE: Final = "OAuthBearerLoginModule"

_SPACE: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

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


def _verify_hostname(value: str) -> Changes:
    if value.lower() not in {"https", "none", ""}:
        raise ValueError(f"{value!r} is neither https nor none")
    return {"verify_hostname": value.lower() == "https"}


def parse_jaas(text: str) -> dict[str, str]:
    r"""Parse `sasl.jaas.config`, in which Kafka's clients store a user name and a password.

    Returns nothing for tokens; raises `ValueError` for other login modules.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required'
    ...            ' username="alice" password="say \\"friend\\"";')
    {'username': 'alice', 'password': 'say "friend"'}
    """
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        # The message must not contain the text: it holds a password.
        raise ValueError('expected the form Module required username="..." password="...";')
    module = entry[1].rpartition(".")[2]
    options = {name: _unquote(value) for name, value in _OPTION.findall(entry[2])}
    if module in _PASSWORD_MODULES:
        return {name: options[name] for name in ("username", "password") if name in options}
    if module == _OAUTH_MODULE and not options:
        return {}
    if module == _OAUTH_MODULE:
        raise ValueError(
            "options of OAuthBearerLoginModule are not supported; name a file with a token:"
            " sasl.oauthbearer.token.endpoint.url=file:///path/of/token"
        )
    raise ValueError(f"the login module {module} is not supported")


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value


def parse_properties(text: str) -> dict[str, str]:
    r"""Parse a Java properties file, as `java.util.Properties` does.

    Returns the values by key; the last one wins. Raises `ValueError` for an invalid escape.

    >>> parse_properties("# who\nsasl.mechanism = PLAIN\nsasl.username: al\\\n  ice")
    {'sasl.mechanism': 'PLAIN', 'sasl.username': 'alice'}
    """
    parsed = {}
    for line in _lines(text):
        match = _KEY.match(line)
        assert match is not None, "an empty key matches any line"
        parsed[_unescape(match[1])] = _unescape(line[match.end() :])
    return parsed


def _lines(text: str) -> Iterator[str]:
    """Yield logical lines: without comments, and with continued lines joined."""
    parts: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(_SPACE)
        if not parts and (not stripped or stripped[0] in "#!"):
            continue
        if _is_continued(stripped):
            parts.append(stripped[:-1])
            continue
        yield "".join(parts) + stripped
        parts = []
    if parts:
        yield "".join(parts)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise ValueError(r"\u must be followed by four hexadecimal digits")
        return _NAMED.get(match[2], match[2] or "")

    return _ESCAPE.sub(replacement, text)


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
    "ssl.endpoint.identification.algorithm": _verify_hostname,
}
