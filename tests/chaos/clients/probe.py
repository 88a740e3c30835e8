"""Asks any broker anything, without a library that would look for the right one.

A broker that is not in charge has to say so. One that was, and does not know yet that it is no
longer, must not answer from memory; so whatever is answered here counts, whoever it comes from.
Nothing is tried twice, and records that every broker has to refuse are sent as well.
"""

import random
from collections.abc import Callable

from chaos import history
from chaos.clients.orders import Orders, Shift, written
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
    """Someone with a connection to each broker."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._process = journal.process
        self._chance = random.Random(orders.seed)
        self._ports = [int(each.rpartition(":")[2]) for each in orders.bootstrap.split(",")]
        self._wires: dict[int, Wire] = {}
        self._sent_count = 0
        journal.write(history.Producer(self._process, now_ns(), keeps_order=True))

    def ask(self) -> None:
        """Ask one broker one thing, and forget its connection if that does not work out."""
        port = self._chance.choice(self._ports)
        asked: Callable[[Wire, int], None] = self._chance.choice(
            [self._send, self._send_damaged, self._ask_end, self._ask_end, self._ask_commit]
        )
        try:
            wire = self._wires.get(port) or Wire(port, timeout_s=ANSWER_S_MAX)
            self._wires[port] = wire
            asked(wire, self._chance.randrange(self._orders.partitions))
        except OSError:
            self._hang_up(port)

    def finish(self) -> None:
        for port in tuple(self._wires):
            self._hang_up(port)
        self._journal.close()

    def _hang_up(self, port: int) -> None:
        wire = self._wires.pop(port, None)
        if wire is not None:
            wire.socket.close()

    # --- what can be asked --------------------------------------------------------------------

    def _send(self, wire: Wire, partition: int) -> None:
        value = self._invoked(partition)
        name = self._orders.partition(partition)
        batch = batch_of([written(value, self._chance)])
        answer = wire.produce(self._orders.topic, batch, partition=partition)
        if answer.error_code == 0:
            send = Send(self._process, now_ns(), "ok", name, value, answer.base_offset)
        else:
            error = str(answer.error_code)
            send = Send(self._process, now_ns(), "info", name, value, error=error)
        self._journal.write(send)

    def _send_damaged(self, wire: Wire, partition: int) -> None:
        """A record whose checksum is wrong must never be seen by anybody."""
        value = self._invoked(partition)
        batch = batch_of([written(value, self._chance)])
        batch[-1] ^= 0xFF
        answer = wire.produce(self._orders.topic, batch, partition=partition)
        assert answer.error_code != 0, "a damaged record was taken"
        name, error = self._orders.partition(partition), str(answer.error_code)
        self._journal.write(Send(self._process, now_ns(), "fail", name, value, error=error))

    def _ask_end(self, wire: Wire, partition: int) -> None:
        began_ns = now_ns()
        answer = wire.offset(self._orders.topic, LATEST, partition=partition)
        if answer.error_code == 0:
            name = self._orders.partition(partition)
            read = EndRead(self._process, now_ns(), began_ns, name, answer.offset)
            self._journal.write(read)

    def _ask_commit(self, wire: Wire, partition: int) -> None:
        if not self._orders.groups:
            return
        group, began_ns = self._chance.choice(self._orders.groups), now_ns()
        topics = [TopicToFetch(name=self._orders.topic, partitions=[partition])]
        request = OffsetFetchRequest(groups=[GroupToFetch(group_id=group, topics=topics)])
        [answer] = wire.call(OFFSET_FETCH, 8, request).groups
        if answer.error_code == 0 and answer.topics:
            [found] = answer.topics[0].partitions
            if found.error_code == 0:
                name, offset = self._orders.partition(partition), found.committed_offset
                self._journal.write(
                    CommitRead(self._process, now_ns(), began_ns, group, name, offset)
                )

    def _invoked(self, partition: int) -> str:
        value = f"{self._process}:{self._sent_count}"
        self._sent_count += 1
        name = self._orders.partition(partition)
        self._journal.write(Send(self._process, now_ns(), "invoke", name, value))
        return value


def probe(orders: Orders, shift: Shift) -> None:
    prober = Probe(orders, orders.journal(0))
    while not shift.is_over:
        prober.ask()
        shift.rest(PAUSE_S)
    prober.finish()
