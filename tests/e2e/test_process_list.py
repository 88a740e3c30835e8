"""The process list of the machine shows no secrets of a broker."""

from pathlib import Path

import pytest

from services import fork_server
from services.s3_server import ACCESS_KEY, SECRET_KEY, broker_settings
from services.wire import Wire, batch_of

PROCESSES = Path("/proc")

pytestmark = pytest.mark.skipif(not PROCESSES.exists(), reason="no list of processes to read")


def process_tree(process_id):
    """The process and all its descendants."""
    yield process_id
    for task in (PROCESSES / str(process_id) / "task").iterdir():
        for child in (task / "children").read_text().split():
            yield from process_tree(int(child))


def test_credentials_are_not_in_the_process_list(start_broker, s3):
    with fork_server.disabled():
        broker = start_broker(**broker_settings(s3.bucket))
    with Wire(broker.port) as wire:
        wire.create("topic")
        assert wire.produce("topic", batch_of([b"value"])).error_code == 0
    seen = {
        process_id: (PROCESSES / str(process_id) / "cmdline").read_bytes()
        for process_id in process_tree(broker.process_id)
    }
    assert b"broker" in seen[broker.process_id], "the process list contains the broker"
    for line in seen.values():
        assert ACCESS_KEY.encode() not in line
        assert SECRET_KEY.encode() not in line
    assert SECRET_KEY not in broker.logged()
