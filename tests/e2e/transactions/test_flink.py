"""Apache Flink with `KafkaSource`, and `KafkaSink` with `DeliveryGuarantee.EXACTLY_ONCE`.

Each checkpoint flushes the open transactions, and contains their producer ids and epochs. They are
committed when it is complete. A job that continues from it commits them again, and aborts others.
"""

import random
import time
from collections import defaultdict
from pathlib import Path

import pytest

from e2e.transactions.numbered_records import KEYS, PARTITIONS, create, fill
from services import flink, java
from services.committed_records import read_messages, read_values
from services.supervised import SupervisedProcess
from services.transform import Transform
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(400),  # The first run downloads the jars.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

RECORDS = 1200
"""How many records are written before and after the broker is killed; Flink takes 4 s for them."""
CHECKPOINT_INTERVAL_S = 0.5
START_S = 4
DONE_S_MAX = 180

Outputs = dict[tuple[int, str], list[str]]
"""The values of each partition and key, in order."""


def committed(address: str) -> Outputs:
    found: Outputs = defaultdict(list)
    for partition, messages in read_messages(address, "output").items():
        for message in messages:
            key, value = message.key() or b"", message.value() or b""
            found[partition, key.decode()].append(value.decode())
    return dict(found)


def expected(records: int) -> Outputs:
    """The value of each record, and which record of its key it is."""
    return {
        (key % PARTITIONS, f"key {key}"): [
            f"value {number} {order}" for order, number in enumerate(range(key, records, KEYS), 1)
        ]
        for key in range(KEYS)
    }


def written(address: str, topic: str) -> int:
    """How many records there are, with the aborted ones."""
    values = read_values(address, topic, isolation="read_uncommitted")
    return sum(map(len, values.values()))


def wait_for_checkpoint(directory: Path) -> None:
    """Wait for a complete checkpoint, whose transactions are committed milliseconds later."""

    def complete() -> set[Path]:
        return set(directory.glob("*/chk-*/_metadata"))

    before = complete()
    while complete() <= before:
        time.sleep(0.001)


def sleep_up_to(seconds: float) -> None:
    time.sleep(random.uniform(0, seconds))


@pytest.mark.long
@pytest.mark.parametrize("naming", ["INCREMENTING", "POOLING"])
def test_output_is_exactly_once(naming, start_server, tmp_path):
    """Flink is killed when a checkpoint is complete, while it starts, and between checkpoints.

    INCREMENTING, the default, has a new transactional id for each checkpoint, and initializes the
    ids that may have open transactions when it starts. POOLING uses ids again, and lists the open
    transactions when it starts. The broker is killed, too.
    """
    server = start_server()
    create(server.address, "numbers", "input", "output")
    checkpoints = tmp_path / "checkpoints"
    command = flink.command(server.address, checkpoints, naming)
    with (
        # It aborts transactions, which Flink must not read.
        Transform("librdkafka", server.address, "numbers", "input", tmp_path),
        SupervisedProcess(command, tmp_path / "flink.log") as job,
    ):
        fill(server.address, "numbers", RECORDS)
        job.wait_for("completed", 1)
        wait_for_checkpoint(checkpoints)
        job.kill()
        job.wait_for("continues", 1)
        sleep_up_to(START_S)
        job.kill()
        job.wait_for("restored", 1)
        sleep_up_to(2 * CHECKPOINT_INTERVAL_S)
        server.kill()
        server.start()
        job.wait_for("completed", 2)
        fill(server.address, "numbers", RECORDS, first=RECORDS)
        job.wait_for("open", 1)
        job.kill()
        wait_until(
            lambda: sum(map(len, committed(server.address).values())) >= 2 * RECORDS,
            f"{2 * RECORDS} records",
            seconds_max=DONE_S_MAX,
            seen=job.logged,
        )
        assert job.starts > 3
    assert committed(server.address) == expected(2 * RECORDS)
    assert written(server.address, "input") > 2 * RECORDS
