"""Sends small produce requests at a given rate, over many connections, with little CPU.

    async with open_connections(addresses, leaders, topic) as connections:
        response_count = await send_load(connections, per_second=10_000, seconds=10)

Requests are encoded once and sent repeatedly, with acks=all. The number of requests in flight of a
connection is bounded, so that an overloaded machine gets no more than it can handle.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any

from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.header import RequestHeader, decode_response_header, encode_request_header
from kafscale.protocol.messages.produce import PRODUCE
from services.wire import batch_of, produce_request

CONNECTIONS_PER_BROKER = 100
"""Enough for 10,000 requests per second that take more than a second each."""
IN_FLIGHT_MAX = 60
"""Below the default limit of a broker, which is 64 per connection."""
TICK_S = 0.01
VERSION = 9
VALUE = b"x" * 100
_RESPONSE = PRODUCE.response_codec(VERSION)
_HEADER_VERSION = PRODUCE.response_header_version(VERSION)


class Connection(asyncio.Protocol):
    """One producer, which sends round robin to the partitions of one broker."""

    def __init__(self, requests: Iterable[bytes]) -> None:
        self.response_count = 0
        self.errors: list[int] = []
        self._requests = cycle(requests)
        self._reader = FrameReader()
        self._in_flight = 0
        self._transport: asyncio.Transport

    def send(self, count: int) -> int:
        """Send `count` requests, or fewer if too many are in flight; return how many."""
        count = min(count, IN_FLIGHT_MAX - self._in_flight)
        if count > 0:
            self._in_flight += count
            self._transport.write(b"".join(next(self._requests) for _ in range(count)))
        return max(count, 0)

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for response in self._reader.feed(data):
            _, position = decode_response_header(response, _HEADER_VERSION)
            produced = _RESPONSE.decode(response[position:]).topics[0].partitions[0]
            if produced.error_code:
                self.errors.append(produced.error_code)
            self.response_count += 1
            self._in_flight -= 1


@asynccontextmanager
async def open_connections(
    addresses: Mapping[int, str], leaders: Mapping[int, int], topic: str
) -> AsyncIterator[list[Connection]]:
    """Open connections to all brokers that lead partitions."""
    requests: defaultdict[int, list[bytes]] = defaultdict(list)
    for partition, leader_id in leaders.items():
        requests[leader_id].append(_request(topic, partition))
    connections: list[Connection] = []
    try:
        # Adjacent connections are to different brokers, so that few requests are spread evenly too.
        for _ in range(CONNECTIONS_PER_BROKER):
            for leader_id, encoded in requests.items():
                connections.append(await _connect(addresses[leader_id], encoded))
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def send_load(connections: Sequence[Connection], *, per_second: int, seconds: float) -> int:
    """Send requests at this rate; return the number of responses."""
    turns = cycle(connections)
    before = sum(connection.response_count for connection in connections)
    began = time.perf_counter()
    sent = 0
    while (passed := time.perf_counter() - began) < seconds:
        due = round(per_second * passed) - sent
        share = -(-due // len(connections))
        for _ in connections:
            if due <= 0:
                break
            count = next(turns).send(min(share, due))
            due -= count
            sent += count
        # Requests that could not be sent in time are skipped.
        sent += max(due, 0)
        await asyncio.sleep(TICK_S)
    errors = [code for connection in connections for code in connection.errors]
    assert not errors, f"{len(errors)} requests failed with {set(errors)}"
    return sum(connection.response_count for connection in connections) - before


async def _connect(address: str, requests: Iterable[bytes]) -> Connection:
    host, _, port = address.rpartition(":")
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(requests), host, int(port)
    )
    return connection


def _request(topic: str, partition: int) -> bytes:
    header = encode_request_header(
        RequestHeader(PRODUCE.key, VERSION, 0, "bench"), PRODUCE.request_header_version(VERSION)
    )
    request = produce_request(topic, batch_of([VALUE]), partition=partition)
    return b"".join(frame(header, PRODUCE.request_codec(VERSION).encode(request)))
