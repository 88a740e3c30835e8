"""The process that compacts for a broker: `LogCleaner` behind two pipes.

    python -m kafscale.storage.compaction.worker

It reads commands from standard input and writes replies to standard output, each as a frame: the
length of the message, the number of bytes that follow it, the message, the bytes. It ends with the
broker, whose end of the pipe closes then. It knows neither settings nor credentials, and has a low
priority, so that the broker gets the CPU first.
"""

import os
import signal
import sys
from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import IO, Any, Final

import msgspec

from kafscale.storage.compaction.log_cleaner import LogCleaner
from kafscale.storage.compaction.messages import Command, Parts
from kafscale.text.units import MIB

FRAME: Final = Struct(">IQ")
"""The length of the message, and how many bytes follow it."""

NICENESS: Final = 10

BYTEARRAY_BYTES_MAX: Final = MIB


def main() -> None:
    # Ctrl-C in a terminal reaches all processes; the broker decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(0)  # The broker has ended; what is buffered for it cannot be written any more.


def serve(commands: IO[bytes], replies: IO[bytes]) -> None:
    """Handle commands until there are no more."""
    cleaner = LogCleaner()
    decode = msgspec.msgpack.Decoder(Command).decode
    while (frame := read_frame(commands, decode)) is not None:
        reply, parts = cleaner.handle(*frame)
        write_frame(replies, reply, parts)


def read_frame(
    source: IO[bytes], decode: Callable[[memoryview], Any]
) -> tuple[Any, memoryview] | None:
    """Read a message and its bytes; None at the end of the pipe."""
    head = _read(source, FRAME.size)
    if head is None:
        return None
    message_bytes, data_bytes = FRAME.unpack(head)
    message, data = _read(source, message_bytes), _read(source, data_bytes)
    if message is None or data is None:
        return None
    return decode(message), data


def write_frame(target: IO[bytes], message: msgspec.Struct, parts: Parts) -> None:
    encoded = msgspec.msgpack.encode(message)
    target.write(FRAME.pack(len(encoded), sum(len(part) for part in parts)))
    target.write(encoded)
    target.writelines(parts)
    target.flush()


def _read(source: IO[bytes], size: int) -> memoryview | None:
    # Python fills a bytearray with zeros before other threads run: 50 ms for 128 MiB.
    buffer = memoryview(mmap(-1, size) if size > BYTEARRAY_BYTES_MAX else bytearray(size))
    position = 0
    while position < size:
        count = source.readinto(buffer[position:])  # type: ignore[attr-defined]
        if not count:
            return None
        position += count
    return buffer


if __name__ == "__main__":
    main()
