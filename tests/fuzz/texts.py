"""Targets of texts: HTTP heads, addresses, listeners, JSON paths."""

from collections.abc import Iterator
from http import HTTPStatus

from fuzz.target import Target
from kafscale.admin.messages import json_path
from kafscale.broker.network import http
from kafscale.broker.network.connection_quotas import parse_overrides
from kafscale.broker.network.listener_config import configured_listeners
from kafscale.config import load
from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.net import address

HEADS = (
    b"GET /metrics HTTP/1.1\r\nHost: broker\r\nConnection: keep-alive, close\r\n\r\n",
    b"HEAD /readyz?verbose HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\n",
)
LISTENERS = (
    b"INSIDE://127.0.0.1:9092,OUTSIDE://[::1]:9093 INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT 10.0.0.7:500"
)


def parse_head(data: bytes) -> None:
    head = http.parse(data)
    if not isinstance(head, HTTPStatus):
        assert head.path.startswith("/")
        assert "?" not in head.path


def parse_address(data: bytes) -> None:
    """An address has a notation, which is parsed to the same."""
    text = data.decode(errors="replace")
    address.canonical_ip(text)
    found = address.parse(text)
    assert address.parse(str(found)) == found


def configure_listeners(data: bytes) -> None:
    listeners, protocols, overrides, *_ = [*data.decode(errors="replace").split(" "), "", "", ""]
    config = load(
        environ={
            "KAFSCALE_BROKER_LISTENERS": listeners,
            "KAFSCALE_BROKER_LISTENER_SECURITY_PROTOCOL_MAP": protocols,
            "KAFSCALE_NETWORK_MAX_CONNECTIONS_PER_IP_OVERRIDES": overrides,
        }
    )
    configured_listeners(config)
    parse_overrides(config.network.connections_per_ip_overrides)


def find_path(data: bytes) -> None:
    path, _, text = data.decode(errors="replace").partition("|")
    found = json_path.find({"a": [{"b c": 1.5}, "x"]}, json_path.parse(path))
    json_path.equals(found, text)
    json_path.is_plain_text(text)


def path_seeds() -> Iterator[bytes]:
    yield b"a.0.b|1.5"
    yield b'$.a[0]["b c"]|"x"'


TARGETS = (
    Target("HTTP heads", parse_head, lambda: HEADS, ()),
    Target(
        "addresses",
        parse_address,
        lambda: [b"broker-0:9092", b"[::1]:9092", b"::ffff:192.0.2.1", b"fe80::1%eth0"],
        (ValueError,),
    ),
    Target("listeners", configure_listeners, lambda: [LISTENERS], (ConfigError,)),
    Target("JSON paths", find_path, path_seeds, (InvalidRequestError,)),
)
