"""Bytes that mean harm, of strangers and of those who are in: the broker takes none."""

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
from services.siege import INSIDE, OPEN, PLAINTEXT_LISTENERS, TLS_LISTENERS, Siege
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

EXAMPLES = 60
EVERY_REQUEST = [(api, version) for api in APIS for version in api.versions]
brief = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module")
def siege(tmp_path_factory):
    with Siege(tmp_path_factory.mktemp("siege")) as running:
        yield running


@pytest.mark.parametrize("listener", [*PLAINTEXT_LISTENERS, *TLS_LISTENERS])
def test_random_bytes(siege, listener):
    @brief
    @given(st.binary(min_size=1, max_size=200), st.booleans())
    def say(data, framed):
        with siege.stranger(listener) as stranger:
            if framed:
                stranger.say(data)
            else:
                stranger.socket.sendall(data)

    with siege.unharmed():
        say()


@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
@pytest.mark.parametrize("length", [2**31 - 1, 101 << 20, -1, -(2**31)])
def test_lengths_that_cannot_be(siege, listener, length):
    with siege.unharmed():
        before_bytes = siege.memory_bytes()
        strangers = [siege.stranger(listener) for _ in range(20)]
        for stranger in strangers:
            stranger.socket.sendall(struct.pack(">i", length) + bytes(64))
        for stranger in strangers:
            assert stranger.drain() == b""
            stranger.socket.close()
        assert siege.memory_bytes() - before_bytes < 16 << 20


@pytest.mark.parametrize(("listener", "length"), [(OPEN, 100 << 20), (INSIDE, 512 << 10)])
def test_a_length_that_may_be_is_only_a_claim(siege, listener, length):
    """What is set aside grows with what comes, so that a few bytes do not hold a hundred MB."""
    with siege.unharmed():
        before_bytes = siege.memory_bytes()
        strangers = [siege.stranger(listener) for _ in range(60)]
        for stranger in strangers:
            stranger.socket.sendall(struct.pack(">i", length) + bytes(100))
        time.sleep(0.3)
        assert siege.memory_bytes() - before_bytes < 32 << 20
        for stranger in strangers:
            stranger.socket.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("listener", PLAINTEXT_LISTENERS)
def test_requests_of_strangers_whole_and_spoiled(siege, listener, seed):
    """Whoever may not come in is answered by what logging in takes, and by nothing else."""
    source = random.Random(seed)
    with siege.unharmed():
        for api, version in EVERY_REQUEST:
            whole = hostile_requests.request(api, version, source)
            with siege.stranger(listener) as stranger:
                stranger.say(hostile_requests.spoiled(whole, source) if seed else whole)
                stranger.socket.shutdown(1)
                said = stranger.drain()
            if listener == INSIDE and api.key not in UNAUTHENTICATED_APIS:
                assert said == b"", (api.name, version)


@pytest.mark.parametrize("seed", range(6))
def test_requests_of_those_who_may_do_everything_whole_and_spoiled(siege, seed):
    """Nonsense is refused, or done if it makes sense: it is never a defect."""
    source = random.Random(seed)
    with siege.unharmed():
        wire = siege.admin()
        for api, version in source.sample(EVERY_REQUEST, len(EVERY_REQUEST)):
            if api.key in UNAUTHENTICATED_APIS:
                continue
            asked = hostile_requests.request(api, version, source)
            wire.say(hostile_requests.spoiled(asked, source) if seed % 2 else asked)
            wire.socket.settimeout(0.02)
            try:
                wire.receive_frame()
            except TimeoutError:
                pass  # It waits for something, or wants no answer.
            except ConnectionError:
                wire.socket.close()
                wire = siege.admin()
        wire.socket.close()


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x00\x0f\xff\xff"])
def test_arrays_of_absurd_length(siege, count):
    """Old arrays say how many elements follow in four bytes; new ones in a number of any size."""
    old = struct.pack(">hhih", METADATA.key, 1, 7, -1) + count
    new = struct.pack(">hhihb", METADATA.key, 12, 7, -1, 0) + b"\xff\xff\xff\xff\x0f"
    nested = new + b"\xff\xff\xff\xff\x0f" * 20_000
    with siege.unharmed():
        before_bytes = siege.memory_bytes()
        for data in (old, new, nested, old + bytes(200_000)):
            with siege.stranger(OPEN) as stranger:
                stranger.say(data)
                stranger.socket.shutdown(1)
                stranger.drain()
        assert siege.memory_bytes() - before_bytes < 32 << 20


def test_tags_without_end(siege):
    """Unknown tagged fields are skipped, however many and however long they say they are."""
    head = struct.pack(">hhih", API_VERSIONS.key, 3, 7, -1)
    with siege.unharmed():
        for tags in (b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\xff\xff\x0f", b"\x80" * 100_000):
            with siege.stranger() as stranger:
                stranger.say(head + tags)
                stranger.socket.shutdown(1)
                stranger.drain()


def test_names_that_mean_to_write_to_the_log_of_the_operator(siege):
    """A client may call itself what it likes; lines of the log are ours."""
    name = "\x1b[2J\nfake line\r\u2028".encode()
    unreadable = struct.pack(">hhih", 999, 0, 7, len(name)) + name

    def is_told():
        with siege.stranger(OPEN) as stranger:
            stranger.say(unreadable)
            assert stranger.drain() == b""
        return "fake line" in siege.broker.logged(logged_bytes)

    with siege.unharmed():
        logged_bytes = siege.broker.log.stat().st_size
        wait_until(is_told, "a line, of which there are only a few in a second")
        lines = siege.broker.logged(logged_bytes).splitlines()
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("fake") for line in lines)
