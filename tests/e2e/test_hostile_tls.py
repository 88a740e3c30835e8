"""Hostile TLS handshakes: incomplete, invalid, slow, and many at once."""

import socket
import ssl
import time

import pytest

from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from services.attack import (
    MUTUAL,
    OPEN,
    PLAINTEXT_LISTENERS,
    SECURE,
    TIMEOUT_S,
    TLS_LISTENERS,
    AttackHarness,
)
from services.certificates import make_certificates
from services.sasl_wire import SaslWire
from services.secured_broker import ADMIN
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

SLACK_S = 4.0


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    with AttackHarness(tmp_path_factory.mktemp("attack")) as running:
        yield running


def is_closed(caller: socket.socket) -> bool:
    """Wait until the connection is closed; ignore what is received before."""
    try:
        while caller.recv(4096):
            pass
    except ConnectionError:
        pass
    caller.close()
    return True


@pytest.mark.parametrize("listener", TLS_LISTENERS)
def test_incomplete_client_hello_times_out(attack, listener):
    first = attack.client_hello()
    with attack.assert_unharmed():
        callers = [attack.connect_socket(listener) for _ in range(40)]
        for index, caller in enumerate(callers):
            caller.sendall(first[: len(first) * index // len(callers)])
        began = time.monotonic()
        assert all(map(is_closed, callers))
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S


def test_slow_client_hello_times_out(attack):
    first = attack.client_hello()
    with attack.assert_unharmed():
        caller = attack.connect_socket(SECURE)
        began = time.monotonic()
        ended = False
        for byte in first:
            try:
                caller.sendall(bytes([byte]))
            except ConnectionError:
                ended = True
                break
            time.sleep(0.02)
        assert ended
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S
        caller.close()


def test_handshake_without_client_finish_times_out(attack):
    with attack.assert_unharmed():
        callers = [attack.connect_socket(SECURE) for _ in range(40)]
        for caller in callers:
            caller.sendall(attack.client_hello())
            assert caller.recv(1) == b"\x16"
        assert all(map(is_closed, callers))


def test_idle_tls_connection_without_login_is_closed(attack):
    with attack.assert_unharmed():
        context = attack.broker.plain(ADMIN).tls()
        connections = [SaslWire(attack.port(SECURE), tls=context) for _ in range(10)]
        began = time.monotonic()
        for connection in connections:
            assert connection.read_until_closed() == b""
            connection.socket.close()
        assert TIMEOUT_S / 2 < time.monotonic() - began < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
def test_tls_on_a_plaintext_listener_fails(attack, listener):
    with attack.assert_unharmed():
        began = time.monotonic()
        with pytest.raises(OSError, match=r"reset|EOF|closed|wrong version|SSL"):
            SaslWire(attack.port(listener), tls=attack.broker.plain(ADMIN).tls())
        assert time.monotonic() - began < 1, "the first bytes are an invalid frame length"


@pytest.mark.parametrize("listener", TLS_LISTENERS)
def test_plaintext_on_a_tls_listener_fails(attack, listener):
    with attack.assert_unharmed(), attack.connect(listener) as connection:
        connection.send(API_VERSIONS, 3, ApiVersionsRequest("plain", "1"))
        received = connection.read_until_closed()
        assert received[:1] in {b"", b"\x15"}, "an alert, or nothing"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_tls_versions_are_rejected(attack, version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(attack.broker.certificates.authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        context.minimum_version = version
    with pytest.warns(DeprecationWarning, match="deprecated"):
        context.maximum_version = version
    with attack.assert_unharmed(), pytest.raises(OSError, match=r"SSL|closed|reset"):
        SaslWire(attack.port(SECURE), tls=context)


@pytest.mark.parametrize("cipher", ["AES128-SHA", "AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA"])
def test_ciphers_without_forward_secrecy_are_rejected(attack, cipher):
    context = attack.broker.plain(ADMIN).tls()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{cipher}:@SECLEVEL=0")
    with attack.assert_unharmed(), pytest.raises(OSError, match=r"SSL|closed|reset"):
        SaslWire(attack.port(SECURE), tls=context)


def test_untrusted_client_certificate_is_rejected(attack, tmp_path):
    credential = make_certificates(tmp_path, "mallory").users["mallory"]
    context = attack.broker.plain(ADMIN).tls()
    context.load_cert_chain(credential.certificate, credential.key)
    with attack.assert_unharmed():
        received = b"not yet"
        try:
            with SaslWire(attack.port(MUTUAL), tls=context) as wire:
                wire.send(API_VERSIONS, 3, ApiVersionsRequest("mallory", "1"))
                received = wire.read_until_closed()
        except OSError:
            received = b""
        assert received == b""


def test_many_aborted_handshakes_leave_no_memory_in_use(attack):
    """Half of them send invalid TLS records; the others disconnect."""
    first = attack.client_hello()
    with attack.assert_unharmed():
        before_bytes = attack.memory_bytes()
        for _ in range(10):
            callers = [attack.connect_socket(SECURE) for _ in range(60)]
            for index, caller in enumerate(callers):
                caller.sendall(first if index % 2 else b"\x16\x03\x01\xff\xff" + bytes(500))
            for caller in callers:
                caller.close()
        wait_until(
            lambda: attack.memory_bytes() - before_bytes < 32 << 20,
            "memory to be freed",
            seconds_max=15,
        )
        with attack.connect(OPEN) as honest:
            honest.call(API_VERSIONS, 3, ApiVersionsRequest("honest", "1"))
