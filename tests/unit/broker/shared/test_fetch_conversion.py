"""Conversion of batches for old versions of Fetch."""

import asyncio

from doubles.turn_timer import measured_turns
from kafscale.broker.shared.fetch_conversion import convert
from kafscale.records import Codec, Record, build
from kafscale.records.message_set import read


def test_batch_of_many_records_does_not_hold_the_event_loop():
    count = 50_000
    batch = build([Record(offset, 0, None, b"") for offset in range(count)], codec=Codec.GZIP)

    async def scenario() -> list[memoryview]:
        return await convert([memoryview(batch)], 3, 10, 1 << 30)

    with measured_turns() as timer:
        converted = asyncio.run(scenario())
    assert sum(1 for _ in read(b"".join(converted))) == count - 10
    assert timer.longest_seconds < 0.05, timer.longest
