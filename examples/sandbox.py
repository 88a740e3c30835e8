"""What the examples stand on: a Kafscale that runs, or else a broker of their own for a while.

A broker needs no settings: it keeps records and metadata in one directory. Here that is a temporary
one, and the port is a free one, so that an example disturbs nobody.
"""

# ruff: noqa: INP001, T201 - examples are scripts, and talk to whoever runs them.

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
    """Where clients find a Kafscale, and where Spark finds its records."""

    bootstrap_servers: str
    path: str


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all examples have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--bootstrap-server", help="brokers that run; by default one is started")
    made.add_argument("--path", help="of their records: s3://bucket/namespace, a data directory")
    made.add_argument("--records", type=int, default=20_000, help="how many to make up")
    return made


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Kafscale]:
    """The Kafscale that the options name; without any, a broker as long as the block lasts."""
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
    """Create a topic; one that is there is as good."""
    admin = AdminClient({"bootstrap.servers": kafscale.bootstrap_servers})
    if name not in admin.list_topics(timeout=30).topics:
        for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            created.result()


def command(*arguments: str) -> None:
    """Run a command of `kafscale`, as one would type it."""
    from kafscale.cli.main import app  # noqa: PLC0415 - it is needed for this only.

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
    sys.exit("the broker did not start; `kafscale broker` tells why")
