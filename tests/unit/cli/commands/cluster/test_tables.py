"""Tables of `kafscale cluster`."""

import msgspec
import pytest

from kafscale.admin.cluster.operations import ClusterStatus, FlushedPartition, PartitionMove
from kafscale.cli.commands.cluster import tables

BROKER = {
    "id": 1,
    "address": "a:9092",
    "control": "a:9093",
    "rack": "z",
    "version": "9",
    "epoch": 5,
    "isController": True,
    "draining": False,
    "partitionCount": 12,
    "shardCount": 25,
    "movingCount": 2,
    "state": "ready",
    "problems": {},
    "storeHealth": "healthy",
    "uptimeMs": 133_000,
}
UNREACHABLE = BROKER | {
    "id": 2,
    "rack": None,
    "isController": False,
    "state": "unreachable",
    "storeHealth": None,
    "problems": {"control plane": "no broker responds"},
    "uptimeMs": None,
    "address": None,
    "control": None,
}
PARTITION = {
    "topic": "orders",
    "partition": 3,
    "broker": 1,
    "state": "moving",
    "movingTo": 2,
    "leaderEpoch": 7,
    "startOffset": 2,
    "rolledOffset": 8,
    "highWatermark": 9,
    "endOffset": 10,
    "sizeBytes": 2048,
}


@pytest.fixture
def printed(capsys):
    """The lines that a function prints, with one space between any two words."""

    def call(function, *arguments):
        function(*arguments)
        lines = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
        return [line for line in lines if line]

    return call


def test_status_shows_brokers_and_their_problems(printed):
    status = {"clusterId": "c1", "controller": 1, "brokers": [BROKER, UNREACHABLE]}
    heading, names, _, one, two, problem = printed(
        tables.print_status, msgspec.convert(status, ClusterStatus)
    )
    assert heading == "c1: 2 brokers, broker 1 is the controller"
    assert names.startswith("broker state address control rack partitions shards moving store up")
    assert one == "1 * ready a:9092 a:9093 z 12 25 2 healthy 2m 13s 9"
    assert two == "2 unreachable - - - 12 25 2 - - 9"
    assert problem == "broker 2: control plane: no broker responds"


def test_status_shows_partitions_if_requested(printed):
    status = {"clusterId": "c1", "controller": None, "brokers": [BROKER], "partitions": [PARTITION]}
    lines = printed(tables.print_status, msgspec.convert(status, ClusterStatus))
    assert lines[0] == "c1: 1 broker, no controller"
    assert lines[-1] == "orders 3 1 moving to 2 7 2 8 10 2.0 KiB"
    assert printed(tables.print_partitions, []) == ["no partitions are served"]


def test_flush_counts_partitions_by_broker(printed):
    flushed = [FlushedPartition("orders", n, n % 2) for n in range(3)]
    lines = printed(tables.print_flushed, flushed)
    assert lines[2:] == ["0 2", "1 1", "3 partitions fully rolled into segments"]
    assert printed(tables.print_flushed, []) == ["there was nothing to flush"]


def test_moves_are_shown_with_their_state(printed):
    moves = [
        {"topic": "orders", "partition": 0, "from": 1, "to": 2, "done": True},
        {"topic": "orders", "partition": 1, "from": 1, "to": 3, "done": False},
    ]
    assert printed(tables.print_moves, msgspec.convert(moves, list[PartitionMove]))[2:] == [
        "orders/0 1 2 moved",
        "orders/1 1 3 moving",
    ]
    assert printed(tables.print_moves, []) == ["the cluster is balanced; no partition moves"]
