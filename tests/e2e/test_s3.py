"""A broker with an S3 bucket gives the same guarantees as on local disk."""

import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.broker import BrokerProcess
from services.crashes import crash_under_load
from services.process import free_port
from services.s3_server import ACCESS_KEY, SECRET_KEY, broker_settings
from services.selection import long_except
from services.wire import EARLIEST, LATEST, Wire, batch_of

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # See services.load.
]

UNLIMITED_PUTS = {"storage_wal_puts_per_second": "1000"}
"""Requests cost nothing here, so producers need not share PUTs."""
SMALL_SEGMENTS = {"segment_bytes": "65536"}


# --- restarts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", long_except(["terminate", "kill"], "kill".__eq__))
@pytest.mark.parametrize(
    "settings",
    long_except([{}, SMALL_SEGMENTS], SMALL_SEGMENTS.__eq__),
    ids=["one segment", "many"],
)
def test_records_and_offsets_survive_a_restart(start_broker, s3, ending, settings):
    """T-03, T-07."""
    broker = start_broker(**broker_settings(s3.bucket), **UNLIMITED_PUTS, **settings)
    values = [b"%d " % number * 5000 for number in range(40)]
    with Wire(broker.port) as wire:
        wire.create("topic", compression_type="producer")
        for value in values:
            assert wire.produce("topic", batch_of([value])).error_code == 0
    getattr(broker, ending)()
    assert not broker.objects("objects/**/*"), "records are in the bucket and nowhere else"
    broker.start()
    with Wire(broker.port) as wire:
        assert wire.offset("topic", EARLIEST).offset == 0
        assert wire.offset("topic", LATEST).offset == 40
        assert wire.produce("topic", batch_of([b"after"])).base_offset == 40
        records = wire.read("topic")
    assert [record.value for record in records] == [*values, b"after"]
    assert [record.offset for record in records] == list(range(41))


def test_object_keys_and_contents_follow_the_format(start_broker, s3):
    broker = start_broker(**broker_settings(s3.bucket), **UNLIMITED_PUTS, **SMALL_SEGMENTS)
    with Wire(broker.port) as wire:
        wire.create("topic", compression_type="producer")
        for number in range(10):
            wire.produce("topic", batch_of([b"%d" % number * 20_000]))
    [first, *_] = s3.objects("default/_wal/*/*/*.kfw")
    stream, name = s3.key(first).rsplit("/", 1)
    assert stream.startswith("default/_wal/0/"), stream
    assert len(stream.rpartition("/")[2]) == 10
    assert len(name) == len(f"{0:020d}.kfw")
    broker.terminate()
    segments = s3.objects("default/topic/0/*.kfs")
    assert len(segments) >= 2
    assert s3.key(segments[0]) == f"default/topic/0/segment-{0:020d}.kfs"
    indexes = s3.objects("default/topic/0/*.index")
    assert [path.stem for path in indexes] == [path.stem for path in segments]
    command = [Path(sys.executable).with_name("kafscale"), "segment", "verify"]
    verified = subprocess.run(  # noqa: S603 - the command is our own.
        [*command, *segments, *indexes], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_acknowledged_records_survive_crashes_once(start_broker, s3):
    """As on local disk (see `test_crash`), whenever the crash occurs."""
    broker = start_broker(
        **broker_settings(s3.bucket),
        **UNLIMITED_PUTS,
        segment_bytes="16384",
        storage_retention_check_interval_ms="100",
    )
    crash_under_load(broker, random.Random(3))


# --- one owner ------------------------------------------------------------------------------------


def test_replaced_broker_acknowledges_nothing(start_broker, s3, tmp_path):
    """N-03: the bucket rejects its write, and no record is lost or duplicated."""
    settings = {**broker_settings(s3.bucket), **UNLIMITED_PUTS, "broker_id": "1"}
    old = start_broker(**settings)
    with Wire(old.port) as wire, Wire(old.port, timeout_s=20) as late:
        wire.create("topic")
        for number in range(20):
            wire.produce("topic", batch_of([b"%d" % number]))
        old.pause()
        directory = tmp_path / "replacement"
        shutil.copytree(old.data, directory / "data")
        with BrokerProcess(directory, **settings) as new:
            with Wire(new.port) as other:
                assert other.produce("topic", batch_of([b"20"])).base_offset == 20
            old.resume()
            assert is_rejected(late, b"too late")
            assert old.wait() not in (0, -9)
            assert "another process runs as broker 1" in old.logged()
            assert "Traceback" not in old.logged()
            with Wire(new.port) as other:
                assert other.produce("topic", batch_of([b"21"])).base_offset == 21
                records = other.read("topic")
            new.terminate()
            new.start()
            with Wire(new.port) as other:
                assert other.read("topic") == records
    assert [record.value for record in records] == [b"%d" % number for number in range(22)]


def is_rejected(wire: Wire, value: bytes) -> bool:
    """Whether a record is not acknowledged: NOT_LEADER_OR_FOLLOWER, or no response."""
    try:
        return wire.produce("topic", batch_of([value])).error_code == 6
    except ConnectionError:
        return True


# --- failed starts --------------------------------------------------------------------------------


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"s3_endpoint": "http://127.0.0.1:{free}"}, "cannot be reached"),
        ({"s3_endpoint": "http://127.0.0.1:{silent}"}, "cannot be reached"),
        ({"s3_access_key": "unknown-key"}, "access key"),
        ({"s3_secret_key": "wrong-secret-word"}, "signature"),
        ({"s3_bucket": "no-such-bucket"}, "NoSuchBucket"),
    ],
    ids=["unreachable", "no response", "access key", "secret key", "bucket"],
)
def test_unusable_bucket_fails_the_start(s3, silent_port, tmp_path, invalid, message):
    """N-08, S-11: the broker logs the reason within the startup timeout, without secrets."""
    ports = {"free": free_port(), "silent": silent_port}
    invalid = {name: text.format(**ports) for name, text in invalid.items()}
    settings = broker_settings(s3.bucket) | {"startup_timeout_sec": "3"} | invalid
    broker = BrokerProcess(tmp_path / "broker", **settings)
    began = time.monotonic()
    process = broker.launch()
    try:
        code = process.wait(20)
    finally:
        process.kill()
        process.wait()
    output = broker.logged()
    assert code == 1, output
    assert time.monotonic() - began < 15
    assert message in output
    assert f"s3://{settings['s3_bucket']}" in output
    assert "broker listening" not in output
    assert "Traceback" not in output
    for secret in (SECRET_KEY, ACCESS_KEY, "wrong-secret-word", "unknown-key"):
        assert secret not in output


def test_broker_waits_for_the_store_at_start(s3, tmp_path):
    s3.kill()
    broker = BrokerProcess(tmp_path / "broker", **broker_settings(s3.bucket))
    process = broker.launch()
    try:
        time.sleep(2)
        assert process.poll() is None
        s3.start()
        deadline = time.monotonic() + 5
        while "broker listening" not in broker.logged():
            assert time.monotonic() < deadline, broker.logged()
            time.sleep(0.05)
    finally:
        process.terminate()
        assert process.wait(10) == 0
