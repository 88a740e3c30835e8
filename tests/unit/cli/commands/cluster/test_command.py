"""`kafscale cluster`: options, results and errors."""

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from unit.cli.control_plane_cluster import control_planes


@contextmanager
def running(**changes):
    """Run control planes in a thread, because a command runs its own event loop."""
    ready, stop = threading.Event(), None
    server = {}

    async def serve():
        nonlocal stop
        stop = asyncio.Event()
        server["loop"] = asyncio.get_running_loop()
        async with control_planes(**changes) as (_, state):
            server["address"] = str(state["address"])
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    # The audit log of the servers is not part of the command's output.
    with capture_logs():
        thread.start()
        assert ready.wait(10)
        try:
            yield server["address"]
        finally:
            server["loop"].call_soon_threadsafe(stop.set)
            thread.join()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flush"], "give either --topic or --all"),
        (["flush", "--all", "--topic", "orders"], "give either --topic or --all"),
        (["flush", "--all", "--partition", "1"], "--partition needs --topic"),
        (["drain"], "Missing argument 'BROKER'"),
        (["drain", "one"], "as an integer"),
        (["drain", "1", "--deadline", "0"], "Invalid value for '--deadline'"),
        (["status", "--control", "a:b"], "expected host:port"),
    ],
)
def test_wrong_usage_exits_with_2(kafscale, arguments, message):
    result = kafscale("cluster", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_unreachable_control_plane_is_reported_with_advice(kafscale):
    result = kafscale("cluster", "status", "--control", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "no broker responds on the control plane at 127.0.0.1:1" in result.stderr
    assert "start a broker with: kafscale broker" in result.stderr


def test_status_flush_rebalance_and_drain(kafscale):
    with running(rounds=[[0]]) as address:
        environ = {"KAFSCALE_CONTROL_SERVERS": address}
        status = json.loads(kafscale("cluster", "status", "-o", "json", **environ).stdout)
        assert [each["id"] for each in status["brokers"]] == [1, 2]
        assert (
            "2 brokers, broker 1 is the controller"
            in kafscale("cluster", "status", "-p", **environ).stdout
        )
        flushed = kafscale("cluster", "flush", "--all", **environ).stdout
        assert "3 partitions fully rolled into segments" in flushed
        flushed = json.loads(
            kafscale("cluster", "flush", "-t", "orders", "-p", "1", "-o", "json", **environ).stdout
        )
        assert flushed == [{"topic": "orders", "partition": 1, "broker": 2}]
        assert "orders/0" in kafscale("cluster", "rebalance", "--wait", "0", **environ).stdout
        drained = kafscale("cluster", "drain", "1", **environ)
        assert (drained.exit_code, drained.stdout) == (0, "broker 1 transferred 2 partitions\n")


def test_drain_fails_if_partitions_are_left(kafscale):
    with running(stuck=(0, 2)) as address:
        result = kafscale("cluster", "drain", "1", "-o", "json", "--control", address)
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["pending"]) == 2
    assert "broker 1 still owns 2 partitions and continues: orders/0, orders/2" in result.stderr
