"""A broker with forty orders in two partitions, and commands of `kafscale spark` that read it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from kafscale.cli.main import app
from services.broker import BrokerProcess
from services.kafka_records import Sent, create, produce

START_MS = 1_700_000_000_000
COUNT = 40


@contextmanager
def broker_of_orders(directory: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(directory) as running:
        create(running.address, "orders", 2, retention_ms="-1")
        produce(
            running.address,
            "orders",
            [Sent(n % 2, b"%d" % n, b'{"id": %d}' % n, START_MS + n) for n in range(COUNT)],
        )
        yield running


def call(broker: BrokerProcess, *arguments: str) -> Result:
    """Call a command on the session of the tests, for JSON."""
    environ = {"KAFSCALE_DATA_DIR": str(broker.data), "KAFSCALE_BOOTSTRAP_SERVERS": broker.address}
    return CliRunner().invoke(app, ["spark", *arguments, "-o", "json"], env=environ)
