"""The metadata of an embedded broker is lost, its objects are not: no acknowledged record is lost.

A real broker process is killed, and its metadata file removed.
"""

import time

import pytest

from services.broker import BrokerProcess
from services.wire import Wire, batch_of

CLEANUPS_S = 65
"""Time for two rounds of the controller's cleanup of dead streams."""


def lose_metadata(broker: BrokerProcess) -> list[bytes]:
    """Write records to segments and to the WAL, kill the broker, and remove its metadata."""
    values = [b"%d " % number * 500 for number in range(200)]
    with Wire(broker.port) as wire:
        wire.create("topic", compression_type="producer")
        for value in values:
            assert wire.produce("topic", batch_of([value])).error_code == 0
    broker.kill()
    files = list(broker.data.glob("metadata.sqlite*"))
    assert files
    for path in files:
        path.unlink()
    return values


def check(broker: BrokerProcess, values: list[bytes]) -> None:
    """Check that all records are at their offsets, and that writing continues."""
    with Wire(broker.port) as wire:
        read = wire.read("topic")
        assert [record.value for record in read] == values
        assert [record.offset for record in read] == list(range(len(values)))
        values.append(b"%d" % len(values))
        assert wire.produce("topic", batch_of([values[-1]])).error_code == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("settings", [{}, {"segment_bytes": "65536"}], ids=["WAL", "segments"])
def test_lost_metadata_are_restored_from_the_objects(start_broker, settings):
    broker = start_broker(**settings)
    values = lose_metadata(broker)
    broker.start()
    assert "metadata is lost, and restored from the objects" in broker.logged()
    check(broker, values)
    broker.kill()
    broker.start()
    check(broker, values)
    assert broker.logged().count("metadata restore completed") == 1


@pytest.mark.long
@pytest.mark.timeout(180)
def test_restored_records_survive_the_cleanup_of_streams(start_broker):
    broker = start_broker()
    values = lose_metadata(broker)
    broker.start()
    time.sleep(CLEANUPS_S)
    check(broker, values)
    broker.kill()
    broker.start()
    check(broker, values)
