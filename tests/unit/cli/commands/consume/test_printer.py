"""Printing of consumed records: the maximum number, and which offsets count as consumed."""

import asyncio
import threading

import pytest

from kafscale.cli.commands.consume.printer import ConsumeRequest, _print_in_thread, _Printer
from kafscale.client.consumer.reader import Chunk
from kafscale.client.consumer.start_position import StartPosition
from kafscale.records import Record

TOPIC_PARTITION = ("orders", 3)
CHUNK = Chunk(
    TOPIC_PARTITION, [Record(offset, 0, None, b"v%d" % offset) for offset in (5, 6, 8)], 10
)


def printer(count_max=None):
    def formatter(topic_partition, record):
        return b"%d/%s\n" % (topic_partition[1], record.value)

    return _Printer(ConsumeRequest(["orders"], StartPosition(), formatter, True, count_max, print))


def test_printer_prints_everything_without_a_limit():
    printing = printer()
    assert printing.limit(CHUNK) is CHUNK
    assert not printing.is_done


def test_printer_sets_the_next_offset_after_the_limit():
    printing = printer(count_max=5)
    assert printing.limit(CHUNK).next_offset == 10
    assert not printing.is_done
    limited = printing.limit(CHUNK)
    assert ([record.offset for record in limited.records], limited.next_offset) == ([5, 6], 7)
    assert printing.is_done


def test_printer_keeps_the_next_offset_of_a_whole_chunk():
    printing = printer(count_max=3)
    assert printing.limit(CHUNK).next_offset == 10
    assert printing.is_done


def test_printed_records_are_marked_as_consumed(capfdbinary):
    consumed = []
    asyncio.run(_print_in_thread(printer(), CHUNK, lambda *printed: consumed.append(printed)))
    assert capfdbinary.readouterr().out == b"3/v5\n3/v6\n3/v8\n"
    assert consumed == [(TOPIC_PARTITION, 10)]


class SlowPrinter:
    """Blocks until the test allows it to print."""

    def __init__(self):
        self.allowed = threading.Event()
        self.error = None

    def print(self, _):
        self.allowed.wait()
        if self.error:
            raise self.error


def test_cancelled_consumer_waits_for_records_being_printed():
    async def scenario():
        consumed, slow = [], SlowPrinter()
        printing = asyncio.ensure_future(
            _print_in_thread(slow, CHUNK, lambda *printed: consumed.append(printed))
        )
        await asyncio.sleep(0)
        printing.cancel()
        slow.allowed.set()
        with pytest.raises(asyncio.CancelledError):
            await printing
        assert consumed == [(TOPIC_PARTITION, 10)]

    asyncio.run(scenario())


def test_records_are_not_consumed_if_printing_fails():
    async def scenario():
        consumed, slow = [], SlowPrinter()
        slow.error = BrokenPipeError()
        slow.allowed.set()
        with pytest.raises(BrokenPipeError):
            await _print_in_thread(slow, CHUNK, lambda *printed: consumed.append(printed))
        assert consumed == []

    asyncio.run(scenario())
