"""`PartitionLog`: offsets, high watermark, duplicates and watchers."""

import asyncio

import pytest

from kafscale.errors import NotOwnerError, OffsetOutOfRangeError, OutOfOrderSequenceError
from kafscale.records import TimestampType
from kafscale.storage.log.state.tail import TailMemory
from unit.storage.engines import new_log, run_of, simulate, values_batch


class HeldWal:
    """A WAL whose appends become durable on demand."""

    def __init__(self) -> None:
        self.future = asyncio.get_running_loop().create_future()

    def append(self, *_appended):
        return self.future


def leading(**changes):
    log = new_log(**changes)
    log.become_leader(HeldWal())
    return log


def idempotent(sequence: int, *values: bytes):
    return values_batch(values, producer_id=1, producer_epoch=0, base_sequence=sequence)


def test_offsets_are_contiguous_and_visible_only_when_durable():
    async def scenario():
        log = leading()
        assert log.append(values_batch([b"a", b"b"]), 0).base_offset == 0
        assert log.append(values_batch([b"c"]), 0).base_offset == 2
        assert (log.high_watermark, log.end_offset) == (0, 3)
        log.advance_high_watermark(run_of(0, 2), 0)
        assert (log.high_watermark, log.end_offset) == (2, 3)

    simulate(scenario)


def test_duplicate_waits_for_the_original_and_is_not_stored():
    async def scenario():
        log = leading()
        first = log.append(idempotent(0, b"a"), 0)
        again = log.append(idempotent(0, b"a"), 0)
        assert again.base_offset == 0
        assert again.durable is first.durable
        assert log.end_offset == 1
        log.advance_high_watermark(run_of(0, 1), 0)
        assert log.append(idempotent(0, b"a"), 0).durable is None
        with pytest.raises(OutOfOrderSequenceError):
            log.append(idempotent(5, b"f"), 0)

    simulate(scenario)


def test_log_append_time_is_set_if_configured():
    async def scenario():
        log = leading(timestamp_type=TimestampType.LOG_APPEND_TIME)
        batch = values_batch([b"a"])
        assert log.append(batch, 1234).timestamp_ms == 1234
        assert batch.max_timestamp_ms == 1234
        batch.validate(from_producer=False)

    simulate(scenario)


def test_watchers_are_called_for_new_records_and_on_close():
    async def scenario():
        log = leading()
        calls = []
        watcher = lambda watched: calls.append(watched.high_watermark)  # noqa: E731
        log.watch(watcher)
        log.advance_high_watermark(run_of(0, 1), 0)
        log.close()
        assert calls == [1, 1]
        log.unwatch(watcher)
        log.close()
        assert calls == [1, 1]

    simulate(scenario)


def test_closed_log_rejects_calls_and_frees_its_memory():
    async def scenario():
        memory = TailMemory()
        log = new_log(memory)
        log.advance_high_watermark(run_of(0, 1), 0)
        log.close()
        log.advance_high_watermark(run_of(1, 1), 0)
        assert memory.used_bytes == 0
        with pytest.raises(NotOwnerError):
            log.append(values_batch([b"a"]), 0)
        with pytest.raises(NotOwnerError):
            log.check_readable(0)

    simulate(scenario)


@pytest.mark.parametrize("offset", [1, 4])
def test_offset_out_of_range_is_rejected(offset):
    async def scenario():
        log = leading()
        log.advance_high_watermark(run_of(0, 3), 0)
        log.end_offset = 3
        log.advance_start(2)
        log.check_readable(2)
        log.check_readable(3)
        with pytest.raises(OffsetOutOfRangeError):
            log.check_readable(offset)

    simulate(scenario)
