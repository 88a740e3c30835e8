"""Shared by the examples: connects to running brokers, or starts a temporary broker.

A broker needs no settings: it stores records and metadata in one directory. Here the directory is
temporary and the port is a free one, so that an example does not interfere with other brokers.
"""

# ruff: noqa: INP001, T201 - examples are scripts that print.

import argparse
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

START_SECONDS_MAX = 60


class Kafscale(NamedTuple):
    """The addresses of the brokers, and the location of their records for Spark."""

    bootstrap_servers: str
    path: str


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of all examples."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--bootstrap-server", help="running brokers; by default, one is started")
    result.add_argument("--path", help="their records: s3://bucket/namespace or a data directory")
    result.add_argument("--records", type=int, default=20_000, help="how many to generate")
    return result


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Kafscale]:
    """The brokers of the options, or a broker that runs until the end of the block."""
    if options.bootstrap_server and options.path:
        yield Kafscale(options.bootstrap_server, options.path)
        return
    with tempfile.TemporaryDirectory(prefix="kafscale-example-") as directory:
        data = Path(directory) / "data"
        port = _free_port()
        settings = {
            "KAFSCALE_DATA_DIR": str(data),
            "KAFSCALE_BROKER_HOST": "127.0.0.1",
            "KAFSCALE_BROKER_PORT": str(port),
            "KAFSCALE_BROKER_METRICS_PORT": str(_free_port()),
        }
        broker = subprocess.Popen(
            [sys.executable, "-m", "kafscale", "broker"],
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(broker, port)
            yield Kafscale(f"127.0.0.1:{port}", str(data))
        finally:
            broker.terminate()
            broker.wait()


def create_topic(kafscale: Kafscale, name: str, partitions: int) -> None:
    """Create a topic, unless it exists."""
    admin = AdminClient({"bootstrap.servers": kafscale.bootstrap_servers})
    if name not in admin.list_topics(timeout=30).topics:
        for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            created.result()


def command(*arguments: str) -> None:
    """Print and run a `kafscale` command."""
    from kafscale.cli.main import app  # noqa: PLC0415 - only needed here.

    print(f"\n$ kafscale {shlex.join(arguments)}")
    app(list(arguments), prog_name="kafscale", standalone_mode=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(broker: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and broker.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("the broker did not start; run `kafscale broker` to see why")
