"""As much of what comes as is wanted, and what of it counts as printed."""

import asyncio
import threading

import pytest

from kafscale.cli.commands.consume.printer import Wanted, _print_apart, _Printer
from kafscale.client.consumer.reader import Chunk
from kafscale.client.consumer.start_position import Start
from kafscale.records import Record

PLACE = ("orders", 3)
CHUNK = Chunk(PLACE, [Record(offset, 0, None, b"v%d" % offset) for offset in (5, 6, 8)], 10)


def printer(count_max=None):
    def formatter(place, record):
        return b"%d/%s\n" % (place[1], record.value)

    return _Printer(Wanted(["orders"], Start(), formatter, True, count_max, print))


def test_without_a_limit_everything_is_taken():
    printing = printer()
    assert printing.taken(CHUNK) is CHUNK
    assert not printing.has_enough


def test_what_is_cut_off_is_still_to_be_read():
    printing = printer(count_max=5)
    assert printing.taken(CHUNK).next_offset == 10
    assert not printing.has_enough
    taken = printing.taken(CHUNK)
    assert ([record.offset for record in taken.records], taken.next_offset) == ([5, 6], 7)
    assert printing.has_enough


def test_what_is_taken_exactly_is_taken_to_its_end():
    printing = printer(count_max=3)
    assert printing.taken(CHUNK).next_offset == 10
    assert printing.has_enough


def test_what_has_left_counts_as_printed(capfdbinary):
    noted = []
    asyncio.run(_print_apart(printer(), CHUNK, lambda *printed: noted.append(printed)))
    assert capfdbinary.readouterr().out == b"3/v5\n3/v6\n3/v8\n"
    assert noted == [(PLACE, 10)]


class SlowPrinter:
    """Prints when it is allowed to."""

    def __init__(self):
        self.allowed = threading.Event()
        self.error = None

    def print(self, _):
        self.allowed.wait()
        if self.error:
            raise self.error


def test_an_interrupt_waits_for_what_is_about_to_be_printed():
    async def story():
        noted, slow = [], SlowPrinter()
        printing = asyncio.ensure_future(
            _print_apart(slow, CHUNK, lambda *printed: noted.append(printed))
        )
        await asyncio.sleep(0)
        printing.cancel()
        slow.allowed.set()
        with pytest.raises(asyncio.CancelledError):
            await printing
        assert noted == [(PLACE, 10)]

    asyncio.run(story())


def test_what_nobody_took_does_not_count_as_printed():
    async def story():
        noted, slow = [], SlowPrinter()
        slow.error = BrokenPipeError()
        slow.allowed.set()
        with pytest.raises(BrokenPipeError):
            await _print_apart(slow, CHUNK, lambda *printed: noted.append(printed))
        assert noted == []

    asyncio.run(story())
