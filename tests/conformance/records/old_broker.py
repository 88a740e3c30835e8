"""A broker of the days of message sets, as far as librdkafka needs one to speak those formats.

It advertises old versions only, keeps the records fields that producers send as they came, and
answers every fetch from the first offset with one prepared field. One topic, one partition.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 1, 3, 10, 18
UNSUPPORTED_VERSION = 35
COORDINATOR_NOT_AVAILABLE = 15


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


class Body:
    """The bytes of a request, read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def skip_string(self) -> Self:
        (size,) = self.unpack(">h")
        self.take(max(size, 0))
        return self


class OldBroker:
    """The state of it: what may be spoken, what was produced, what is served."""

    def __init__(self, magic: int, topic: str, served: bytes = b"") -> None:
        self.magic = magic
        self.topic = topic
        self.served = served
        self.produced: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.closing = threading.Event()
        self.connections: list[tuple[socket.socket, threading.Thread]] = []
        self.answers: dict[int, Callable[[int, Body], bytes]] = {
            PRODUCE: self.produce,
            FETCH: self.fetch,
            METADATA: self.metadata,
            FIND_COORDINATOR: self.find_coordinator,
            API_VERSIONS: self.api_versions,
        }

    # --- answers ----------------------------------------------------------------------------------

    def api_versions(self, version: int, _: Body) -> bytes:
        """Produce and Fetch up to 1 make a client of magic 0, up to 2 one of magic 1."""
        newest = 1 + self.magic
        ranges = {PRODUCE: newest, FETCH: newest, METADATA: 0, FIND_COORDINATOR: 0, API_VERSIONS: 0}
        error = UNSUPPORTED_VERSION if version else 0
        rows = (struct.pack(">hhh", key, 0, maximum) for key, maximum in ranges.items())
        return struct.pack(">h", error) + array(*rows)

    def metadata(self, _version: int, _: Body) -> bytes:
        node = struct.pack(">i", 1)
        broker = node + string("127.0.0.1") + struct.pack(">i", self.port)
        partition = struct.pack(">hii", 0, 0, 1) + array(node) + array(node)
        return array(broker) + array(struct.pack(">h", 0) + string(self.topic) + array(partition))

    def find_coordinator(self, _version: int, _: Body) -> bytes:
        return (
            struct.pack(">hi", COORDINATOR_NOT_AVAILABLE, -1) + string("") + struct.pack(">i", -1)
        )

    def produce(self, version: int, body: Body) -> bytes:
        body.unpack(">hii")
        _, _, size = body.skip_string().unpack(">iii")
        self.produced.append(body.take(size))
        partition = struct.pack(">ihq", 0, 0, 0) + (struct.pack(">q", -1) if version >= 2 else b"")
        return self.answer(partition) + (struct.pack(">i", 0) if version >= 1 else b"")

    def fetch(self, version: int, body: Body) -> bytes:
        body.unpack(">iiii")
        _, _, offset, _ = body.skip_string().unpack(">iiqi")
        records = b"" if offset else self.served
        if not records:
            self.closing.wait(0.02)  # A fetch with nothing to bring waits, lest the client spin.
        partition = struct.pack(">ihqi", 0, 0, 10**6, len(records)) + records
        return (struct.pack(">i", 0) if version >= 1 else b"") + self.answer(partition)

    def answer(self, partition: bytes) -> bytes:
        return array(string(self.topic) + array(partition))

    # --- connections ------------------------------------------------------------------------------

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                thread = threading.Thread(target=self.serve, args=(connection,), daemon=True)
                self.connections.append((connection, thread))
                thread.start()

    def close(self) -> None:
        self.closing.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection, thread in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(5)

    def serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            while len(prefix := stream.read(4)) == 4:
                body = Body(stream.read(*struct.unpack(">i", prefix)))
                key, version, correlation_id = body.unpack(">hhi")
                content = self.answers[key](version, body.skip_string())
                stream.write(struct.pack(">ii", len(content) + 4, correlation_id) + content)
                stream.flush()


@contextmanager
def old_broker(magic: int, topic: str, served: bytes = b"") -> Iterator[OldBroker]:
    broker = OldBroker(magic, topic, served)
    acceptor = threading.Thread(target=broker.accept, daemon=True)
    acceptor.start()
    try:
        yield broker
    finally:
        broker.close()
        acceptor.join(5)
