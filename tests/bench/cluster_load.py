"""Sends small produce requests at a given rate, over many connections, with little CPU.

    async with hammer(addresses, leaders, topic) as connections:
        answered = await strike(connections, per_second=10_000, seconds=10)

Requests are made once and sent over and over, with acks=all. A connection has a bounded number of
them under way, so that a machine which cannot keep up is asked for what it gives, and no more.
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

CONNECTIONS_A_BROKER = 100
"""Enough that each of 10,000 requests a second may take more than a second."""
IN_FLIGHT_MAX = 60
"""What a broker works on at once of one connection is 64, by default."""
TICK_S = 0.01
VERSION = 9
VALUE = b"x" * 100
_ANSWER = PRODUCE.response_codec(VERSION)
_HEADER_VERSION = PRODUCE.response_header_version(VERSION)


class Connection(asyncio.Protocol):
    """One producer, whose requests go to partitions of one broker in turn."""

    def __init__(self, requests: Iterable[bytes]) -> None:
        self.answered = 0
        self.refused: list[int] = []
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
        for answer in self._reader.feed(data):
            _, position = decode_response_header(answer, _HEADER_VERSION)
            produced = _ANSWER.decode(answer[position:]).topics[0].partitions[0]
            if produced.error_code:
                self.refused.append(produced.error_code)
            self.answered += 1
            self._in_flight -= 1


@asynccontextmanager
async def send_load(
    addresses: Mapping[int, str], leaders: Mapping[int, int], topic: str
) -> AsyncIterator[list[Connection]]:
    """Connections to all brokers that lead something."""
    requests: defaultdict[int, list[bytes]] = defaultdict(list)
    for partition, leader_id in leaders.items():
        requests[leader_id].append(_request(topic, partition))
    connections: list[Connection] = []
    try:
        # Neighbours are of different brokers, so that a few requests are spread as many are.
        for _ in range(CONNECTIONS_A_BROKER):
            for leader_id, made in requests.items():
                connections.append(await _connect(addresses[leader_id], made))
        yield connections
    finally:
        for connection in connections:
            connection.close()


async def send_share(connections: Sequence[Connection], *, per_second: int, seconds: float) -> int:
    """How many requests are answered in the time."""
    turns = cycle(connections)
    before = sum(connection.answered for connection in connections)
    began = time.perf_counter()
    sent = 0
    while (passed := time.perf_counter() - began) < seconds:
        due = round(per_second * passed) - sent
        share = -(-due // len(connections))
        for _ in connections:
            if due <= 0:
                break
            taken = next(turns).send(min(share, due))
            due -= taken
            sent += taken
        # What could not be sent in time is not made up for.
        sent += max(due, 0)
        await asyncio.sleep(TICK_S)
    refused = [code for connection in connections for code in connection.refused]
    assert not refused, f"{len(refused)} requests were refused, with {set(refused)}"
    return sum(connection.answered for connection in connections) - before


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
