"""`kafscale spark restore`, `replay` and `mirror`, from the command line to what they print."""

import json

import pytest
from typer.testing import CliRunner

from kafscale.cli.main import app
from services.broker import BrokerProcess
from services.kafka_records import Sent, create, produce, read

START_MS = 1_700_000_000_000
COUNT = 40


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        create(running.address, "orders", 2, retention_ms="-1")
        produce(
            running.address,
            "orders",
            [Sent(n % 2, b"%d" % n, b'{"id": %d}' % n, START_MS + n) for n in range(COUNT)],
        )
        yield running


@pytest.fixture
def kafscale(broker, spark):
    """Call a command on the session of the tests; the JSON that it prints."""
    assert spark is not None

    def call(*arguments):
        environ = {
            "KAFSCALE_DATA_DIR": str(broker.data),
            "KAFSCALE_BOOTSTRAP_SERVERS": broker.address,
        }
        result = CliRunner().invoke(app, ["spark", *arguments, "-o", "json"], env=environ)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return call


def test_restore(kafscale, broker):
    until = f"@{START_MS + 9}"
    assert kafscale("restore", "orders", "restored", "--as-of", until)["written"] == 10
    assert kafscale("restore", "orders", "restored", "--as-of", until)["written"] == 0
    assert sum(map(len, read(broker.address, "restored").values())) == 10


def test_replay(kafscale, broker):
    arguments = ("replay", "orders", "replayed", "--where", "json:id::int < 7",
                 "--partitioner", "key", "--partitions", "3")  # fmt: skip
    assert kafscale(*arguments)["written"] == 7
    assert kafscale(*arguments)["written"] == 0
    values = {
        each.value for records in read(broker.address, "replayed").values() for each in records
    }
    assert values == {b'{"id": %d}' % n for n in range(7)}


def test_mirror(kafscale, broker):
    arguments = ("mirror", "--from", broker.address, "--prefix", "mirrored.", "--topic", "orders")
    assert kafscale(*arguments)["records"] == COUNT
    assert kafscale(*arguments)["records"] == 0
    assert [len(records) for records in read(broker.address, "mirrored.orders").values()] == [
        20,
        20,
    ]
