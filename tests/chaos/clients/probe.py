"""Sends requests to random brokers, without a library that would find the right one.

A broker that is not the owner has to return an error. A former owner that does not know yet that it
lost ownership must not respond from memory. So every response counts, from whichever broker.
Nothing is retried, and records that every broker has to reject are sent as well.
"""

import random
from collections.abc import Callable

from chaos import history
from chaos.clients.options import ClientOptions, StopSignal, encode_value
from chaos.history import CommitRead, EndRead, Journal, Send, now_ns
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    GroupToFetch,
    OffsetFetchRequest,
    TopicToFetch,
)
from services.wire import LATEST, Wire, batch_of

PAUSE_S = 0.02
ANSWER_S_MAX = 4
CORRUPT_MESSAGE = 2


class Probe:
    """A client with a connection to each broker."""

    def __init__(self, options: ClientOptions, journal: Journal) -> None:
        self._options = options
        self._journal = journal
        self._process = journal.process
        self._rng = random.Random(options.seed)
        self._ports = [int(each.rpartition(":")[2]) for each in options.bootstrap.split(",")]
        self._wires: dict[int, Wire] = {}
        self._sent_count = 0
        journal.write(history.Producer(self._process, now_ns(), keeps_order=True))

    def ask(self) -> None:
        """Send one random request to one broker; close the connection on an error."""
        port = self._rng.choice(self._ports)
        request_kind: Callable[[Wire, int], None] = self._rng.choice(
            [self._send, self._send_damaged, self._ask_end, self._ask_end, self._ask_commit]
        )
        try:
            wire = self._wires.get(port) or Wire(port, timeout_s=ANSWER_S_MAX)
            self._wires[port] = wire
            request_kind(wire, self._rng.randrange(self._options.partitions))
        except OSError:
            self._close(port)

    def finish(self) -> None:
        for port in tuple(self._wires):
            self._close(port)
        self._journal.close()

    def _close(self, port: int) -> None:
        wire = self._wires.pop(port, None)
        if wire is not None:
            wire.socket.close()

    # --- requests -----------------------------------------------------------------------------

    def _send(self, wire: Wire, partition: int) -> None:
        value = self._invoked(partition)
        name = self._options.partition(partition)
        batch = batch_of([encode_value(value, self._rng)])
        response = wire.produce(self._options.topic, batch, partition=partition)
        if response.error_code == 0:
            send = Send(self._process, now_ns(), "ok", name, value, response.base_offset)
        else:
            error = str(response.error_code)
            send = Send(self._process, now_ns(), "info", name, value, error=error)
        self._journal.write(send)

    def _send_damaged(self, wire: Wire, partition: int) -> None:
        """A record with a wrong checksum must never be read."""
        value = self._invoked(partition)
        batch = batch_of([encode_value(value, self._rng)])
        batch[-1] ^= 0xFF
        response = wire.produce(self._options.topic, batch, partition=partition)
        assert response.error_code != 0, "a damaged record was accepted"
        name, error = self._options.partition(partition), str(response.error_code)
        self._journal.write(Send(self._process, now_ns(), "fail", name, value, error=error))

    def _ask_end(self, wire: Wire, partition: int) -> None:
        began_ns = now_ns()
        response = wire.offset(self._options.topic, LATEST, partition=partition)
        if response.error_code == 0:
            name = self._options.partition(partition)
            read = EndRead(self._process, now_ns(), began_ns, name, response.offset)
            self._journal.write(read)

    def _ask_commit(self, wire: Wire, partition: int) -> None:
        if not self._options.groups:
            return
        group, began_ns = self._rng.choice(self._options.groups), now_ns()
        topics = [TopicToFetch(name=self._options.topic, partitions=[partition])]
        request = OffsetFetchRequest(groups=[GroupToFetch(group_id=group, topics=topics)])
        [response] = wire.call(OFFSET_FETCH, 8, request).groups
        if response.error_code == 0 and response.topics:
            [result] = response.topics[0].partitions
            if result.error_code == 0:
                name, offset = self._options.partition(partition), result.committed_offset
                self._journal.write(
                    CommitRead(self._process, now_ns(), began_ns, group, name, offset)
                )

    def _invoked(self, partition: int) -> str:
        value = f"{self._process}:{self._sent_count}"
        self._sent_count += 1
        name = self._options.partition(partition)
        self._journal.write(Send(self._process, now_ns(), "invoke", name, value))
        return value


def probe(options: ClientOptions, stop_signal: StopSignal) -> None:
    prober = Probe(options, options.journal(0))
    while not stop_signal.is_set:
        prober.ask()
        stop_signal.wait(PAUSE_S)
    prober.finish()
