"""Two requests by hand, to bring records fields into a broker and out of it untouched."""

import socket
import struct

PRODUCE, PRODUCE_VERSION = 0, 3
FETCH, FETCH_VERSION = 1, 4
BYTES_MAX = 1 << 24


def produce(port: int, topic: str, records: bytes) -> None:
    """Bring a records field into partition 0."""
    acknowledgements, timeout_ms = -1, 5000
    body = struct.pack(">hhi", -1, acknowledgements, timeout_ms) + _partition(topic)
    answer = _call(port, PRODUCE, PRODUCE_VERSION, body + struct.pack(">i", len(records)) + records)
    (error,) = struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)
    assert error == 0


def fetch(port: int, topic: str, offset: int = 0) -> bytes:
    """The records field of partition 0 from an offset on."""
    replica_id, wait_ms, bytes_min, isolation = -1, 1000, 1, 0
    body = struct.pack(">iiiib", replica_id, wait_ms, bytes_min, BYTES_MAX, isolation)
    body += _partition(topic) + struct.pack(">qi", offset, BYTES_MAX)
    answer = _call(port, FETCH, FETCH_VERSION, body)
    position = 4 + 4 + 2 + len(topic) + 4
    _, error, _, _, aborted, size = struct.unpack_from(">ihqqii", answer, position)
    assert error == 0
    assert aborted <= 0
    start = position + struct.calcsize(">ihqqii")
    return answer[start : start + size]


def _partition(topic: str) -> bytes:
    """One topic, by its name, with one partition, 0."""
    return struct.pack(">ih", 1, len(topic)) + topic.encode() + struct.pack(">ii", 1, 0)


def _call(port: int, key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhih", key, version, 1, -1) + body
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            return stream.read(size)[4:]
