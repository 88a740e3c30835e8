"""Malformed bytes from unauthenticated and authenticated clients do not harm the broker."""

import random
import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafscale.broker.security.sasl_login import UNAUTHENTICATED_APIS
from kafscale.protocol.apis import APIS
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.metadata import METADATA
from services import hostile_requests
from services.attack import INSIDE, OPEN, PLAINTEXT_LISTENERS, TLS_LISTENERS, AttackHarness
from services.selection import long_except
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

EXAMPLES = 60
EVERY_REQUEST = [(api, version) for api in APIS for version in api.versions]
brief = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    with AttackHarness(tmp_path_factory.mktemp("attack")) as running:
        yield running


@pytest.mark.parametrize("listener", [*PLAINTEXT_LISTENERS, *TLS_LISTENERS])
def test_random_bytes_do_not_harm_the_broker(attack, listener):
    @brief
    @given(st.binary(min_size=1, max_size=200), st.booleans())
    def send_random(data, framed):
        with attack.connect(listener) as connection:
            if framed:
                connection.send_frame(data)
            else:
                connection.socket.sendall(data)

    with attack.assert_unharmed():
        send_random()


@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
@pytest.mark.parametrize("length", [2**31 - 1, 101 << 20, -1, -(2**31)])
def test_invalid_frame_lengths_close_the_connection(attack, listener, length):
    with attack.assert_unharmed():
        before_bytes = attack.memory_bytes()
        connections = [attack.connect(listener) for _ in range(20)]
        for connection in connections:
            connection.socket.sendall(struct.pack(">i", length) + bytes(64))
        for connection in connections:
            assert connection.read_until_closed() == b""
            connection.socket.close()
        assert attack.memory_bytes() - before_bytes < 16 << 20


@pytest.mark.parametrize(("listener", "length"), [(OPEN, 100 << 20), (INSIDE, 512 << 10)])
def test_announced_frame_length_allocates_no_memory(attack, listener, length):
    """Buffers grow with the bytes received, so that a length of 100 MB does not cost 100 MB."""
    with attack.assert_unharmed():
        before_bytes = attack.memory_bytes()
        connections = [attack.connect(listener) for _ in range(60)]
        for connection in connections:
            connection.socket.sendall(struct.pack(">i", length) + bytes(100))
        time.sleep(0.3)
        assert attack.memory_bytes() - before_bytes < 32 << 20
        for connection in connections:
            connection.socket.close()


@pytest.mark.parametrize("seed", long_except(range(3), (1).__gt__))
@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
def test_valid_and_corrupted_requests_without_login(attack, listener, seed):
    """Without a login, the broker answers authentication requests only."""
    source = random.Random(seed)
    with attack.assert_unharmed():
        for api, version in EVERY_REQUEST:
            whole = hostile_requests.request(api, version, source)
            with attack.connect(listener) as connection:
                connection.send_frame(hostile_requests.mutated(whole, source) if seed else whole)
                connection.socket.shutdown(1)
                received = connection.read_until_closed()
            if listener == INSIDE and api.key not in UNAUTHENTICATED_APIS:
                assert received == b"", (api.name, version)


@pytest.mark.parametrize("seed", long_except(range(6), (2).__gt__))
def test_valid_and_corrupted_requests_of_an_admin(attack, seed):
    """Malformed requests get an error or close the connection; none causes an internal error."""
    source = random.Random(seed)
    with attack.assert_unharmed():
        wire = attack.admin()
        for api, version in source.sample(EVERY_REQUEST, len(EVERY_REQUEST)):
            if api.key in UNAUTHENTICATED_APIS:
                continue
            requested = hostile_requests.request(api, version, source)
            if seed % 2:
                requested = hostile_requests.mutated(requested, source)
            wire.socket.settimeout(0.02)
            try:
                wire.send_frame(
                    requested
                )  # It fails if the previous request closed the connection.
                wire.receive_frame()
            except TimeoutError:
                pass  # The request waits for something, or has no response.
            except ConnectionError:
                wire.socket.close()
                wire = attack.admin()
        wire.socket.close()


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x00\x0f\xff\xff"])
def test_invalid_array_lengths_allocate_no_memory(attack, count):
    """Old arrays have an int32 length, compact arrays a varint."""
    old = struct.pack(">hhih", METADATA.key, 1, 7, -1) + count
    new = struct.pack(">hhihb", METADATA.key, 12, 7, -1, 0) + b"\xff\xff\xff\xff\x0f"
    nested = new + b"\xff\xff\xff\xff\x0f" * 20_000
    with attack.assert_unharmed():
        before_bytes = attack.memory_bytes()
        for data in (old, new, nested, old + bytes(200_000)):
            with attack.connect(OPEN) as connection:
                connection.send_frame(data)
                connection.socket.shutdown(1)
                connection.read_until_closed()
        assert attack.memory_bytes() - before_bytes < 32 << 20


def test_invalid_tagged_fields_do_not_harm_the_broker(attack):
    """Unknown tagged fields are skipped, whatever counts and sizes they announce."""
    head = struct.pack(">hhih", API_VERSIONS.key, 3, 7, -1)
    with attack.assert_unharmed():
        for tags in (b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\xff\xff\x0f", b"\x80" * 100_000):
            with attack.connect() as connection:
                connection.send_frame(head + tags)
                connection.socket.shutdown(1)
                connection.read_until_closed()


def test_client_ids_cannot_forge_log_lines(attack):
    """Control characters of client ids are escaped in log lines."""
    name = "\x1b[2J\nfake line\r\u2028".encode()
    unreadable = struct.pack(">hhih", 999, 0, 7, len(name)) + name

    def is_logged():
        with attack.connect(OPEN) as connection:
            connection.send_frame(unreadable)
            assert connection.read_until_closed() == b""
        return "fake line" in attack.broker.logged(logged_bytes)

    with attack.assert_unharmed():
        logged_bytes = attack.broker.log.stat().st_size
        wait_until(is_logged, "a log line (they are rate limited)")
        lines = attack.broker.logged(logged_bytes).splitlines()
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("fake") for line in lines)
