"""The bucket at start, its credentials, and the read replica."""

import shutil
import time
from dataclasses import replace

import pytest

from services.exposition import sample
from services.process import free_port
from services.s3_server import BUCKET, S3Server, broker_settings
from services.selection import long_except
from services.wire import Wire, batch_of

pytestmark = pytest.mark.timeout(60)

UNLIMITED_PUTS = {"storage_wal_puts_per_second": "1000"}
VALUES = [b"%d" % number * 20_000 for number in range(12)]


def produce(port: int) -> None:
    with Wire(port) as wire:
        wire.create("topic", compression_type="producer")
        for value in VALUES:
            assert wire.produce("topic", batch_of([value])).error_code == 0


def consume(port: int) -> list[bytes | None]:
    with Wire(port) as wire:
        return [record.value for record in wire.read("topic")]


def test_bucket_is_created_if_configured(start_broker, s3):
    settings = broker_settings(replace(s3.bucket, name="created-by-kafscale"))
    broker = start_broker(**settings, **UNLIMITED_PUTS, s3_create_bucket="true")
    produce(broker.port)
    assert consume(broker.port) == VALUES
    assert list((s3.root / "created-by-kafscale").rglob("*.kfw"))
    assert broker.logged().count("bucket created") == 1
    broker.terminate()
    broker.start()
    assert consume(broker.port) == VALUES
    assert broker.logged().count("bucket created") == 1


def test_credentials_are_read_from_a_file_and_not_logged(start_broker, s3, tmp_path):
    file = tmp_path / "credentials"
    file.write_text(
        f"[records]\naws_access_key_id = {s3.bucket.access_key}\n"
        f"aws_secret_access_key = {s3.bucket.secret_key}\n"
    )
    settings = broker_settings(s3.bucket)
    del settings["s3_access_key"], settings["s3_secret_key"]
    broker = start_broker(
        **settings,
        **UNLIMITED_PUTS,
        s3_credential_source="file",
        s3_credentials_file=str(file),
        s3_profile="records",
        log_level="debug",
    )
    produce(broker.port)
    assert consume(broker.port) == VALUES
    broker.terminate()
    for secret in (s3.bucket.access_key, s3.bucket.secret_key):
        assert secret not in broker.logged()


def copy_objects(s3: S3Server, names: str) -> None:
    """Copy the objects that match `names` to the read bucket."""
    for path in s3.objects(names):
        target = s3.root / "copy" / s3.key(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


@pytest.mark.parametrize(
    "names",
    long_except(["default/topic/0/*", "default/topic/0/*0.*"], "default/topic/0/*0.*".__eq__),
)
def test_segments_are_read_from_an_incomplete_read_bucket(start_broker, s3, names):
    (s3.root / "copy").mkdir()
    settings = broker_settings(s3.bucket) | UNLIMITED_PUTS | {"s3_read_bucket": "copy"}
    broker = start_broker(**settings, segment_bytes="65536")
    produce(broker.port)
    broker.terminate()
    copy_objects(s3, names)
    broker.start()
    assert consume(broker.port) == VALUES
    metrics = broker.http("/metrics")[1]
    assert sample(metrics, 's3_operations_total{operation="replica_get_range"') > 0
    assert consume(broker.port) == VALUES


@pytest.mark.long
def test_unreachable_read_bucket_causes_no_long_delay(start_broker, s3):
    settings = broker_settings(s3.bucket) | UNLIMITED_PUTS
    broker = start_broker(
        **settings,
        segment_bytes="65536",
        s3_read_bucket=BUCKET,
        s3_read_endpoint=f"http://127.0.0.1:{free_port()}",
    )
    produce(broker.port)
    broker.terminate()
    broker.start()
    began = time.monotonic()
    assert consume(broker.port) == VALUES
    assert time.monotonic() - began < 3
    assert broker.http("/readyz")[0] == 200
    assert broker.logged().count("read bucket failed") <= 2, "once per broker session"
