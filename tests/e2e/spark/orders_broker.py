"""A broker with a topic `orders`, and `kafscale spark` commands that read it."""

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
def orders_broker(directory: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(directory) as running:
        create(running.address, "orders", 2, retention_ms="-1")
        produce(
            running.address,
            "orders",
            [Sent(n % 2, b"%d" % n, b'{"id": %d}' % n, START_MS + n) for n in range(COUNT)],
        )
        yield running


def call(broker: BrokerProcess, *arguments: str) -> Result:
    """Run a command on the shared session, with JSON output."""
    environ = {"KAFSCALE_DATA_DIR": str(broker.data), "KAFSCALE_BOOTSTRAP_SERVERS": broker.address}
    return CliRunner().invoke(app, ["spark", *arguments, "-o", "json"], env=environ)
