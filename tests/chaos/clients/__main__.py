"""One client of the workload as a program.

Its argument holds its options as JSON, and it runs until its standard input ends.
"""

import functools
import sys
from collections.abc import Callable

import msgspec

from chaos.clients import (
    aio,
    compacted_topic,
    librdkafka_member,
    librdkafka_producer,
    librdkafka_reader,
    merger,
    probe,
    recovery_check,
    recreator,
    transactions,
)
from chaos.clients.options import ClientOptions, StopSignal

ROLES: dict[str, Callable[[ClientOptions, StopSignal], None]] = {
    "idempotent": functools.partial(
        librdkafka_producer.produce, settings=librdkafka_producer.IDEMPOTENT
    ),
    "plain": functools.partial(librdkafka_producer.produce, settings=librdkafka_producer.PLAIN),
    "recovery-check": recovery_check.check_recovery,
    "seeking-reader": librdkafka_reader.read_and_seek,
    "final": librdkafka_reader.read_all,
    "member": librdkafka_member.consume,
    "aio-producer": aio.produce,
    "aio-member": aio.consume,
    "probe": probe.probe,
    "merger": merger.merge,
    "recreator": recreator.recreate,
    "recreator-final": recreator.read_live,
    "compacted-writer": compacted_topic.write,
    "compacted-reader": compacted_topic.scan_again_and_again,
    "compacted-final": compacted_topic.scan_at_the_end,
    "transactional-writer": transactions.write,
    "committed-reader": transactions.read_committed,
    "committed-final": transactions.read_all_committed,
}


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=ClientOptions)
    ROLES[options.role](options, StopSignal())


main()
