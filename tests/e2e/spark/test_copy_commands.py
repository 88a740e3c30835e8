"""Tests of the commands `kafscale spark restore`, `replay` and `mirror`."""

import json

import pytest

from e2e.spark.orders_broker import COUNT, START_MS, call, orders_broker
from services.kafka_records import read


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with orders_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def kafscale(broker, spark):
    """Run a command on the shared session; return its JSON output."""
    assert spark is not None

    def printed(*arguments):
        result = call(broker, *arguments)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return printed


def test_restore_command(kafscale, broker):
    until = f"@{START_MS + 9}"
    assert kafscale("restore", "orders", "restored", "--as-of", until)["written"] == 10
    assert kafscale("restore", "orders", "restored", "--as-of", until)["written"] == 0
    assert sum(map(len, read(broker.address, "restored").values())) == 10


def test_replay_command(kafscale, broker):
    arguments = (
        "replay",
        "orders",
        "replayed",
        "--where",
        "json:id::int < 7",
        "--partitioner",
        "key",
        "--partitions",
        "3",
    )
    assert kafscale(*arguments)["written"] == 7
    assert kafscale(*arguments)["written"] == 0
    values = {
        each.value for records in read(broker.address, "replayed").values() for each in records
    }
    assert values == {b'{"id": %d}' % n for n in range(7)}


def test_mirror_command(kafscale, broker):
    arguments = ("mirror", "--from", broker.address, "--prefix", "mirrored.", "--topic", "orders")
    assert kafscale(*arguments)["records"] == COUNT
    assert kafscale(*arguments)["records"] == 0
    assert [len(records) for records in read(broker.address, "mirrored.orders").values()] == [
        20,
        20,
    ]
