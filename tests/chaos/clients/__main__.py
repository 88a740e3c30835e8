"""One client of the workload as a program: its orders are its argument, and it works until its
input ends."""

import functools
import sys
from collections.abc import Callable

import msgspec

from chaos.clients import (
    aio,
    herald,
    librdkafka_member,
    librdkafka_producer,
    librdkafka_reader,
    probe,
)
from chaos.clients.orders import Orders, Shift

ROLES: dict[str, Callable[[Orders, Shift], None]] = {
    "idempotent": functools.partial(
        librdkafka_producer.produce, settings=librdkafka_producer.IDEMPOTENT
    ),
    "plain": functools.partial(librdkafka_producer.produce, settings=librdkafka_producer.PLAIN),
    "herald": herald.proclaim,
    "wanderer": librdkafka_reader.wander,
    "final": librdkafka_reader.read_all,
    "member": librdkafka_member.consume,
    "aio-producer": aio.produce,
    "aio-member": aio.consume,
    "probe": probe.probe,
}


def main() -> None:
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    ROLES[orders.role](orders, Shift())


main()
