"""Checks the recovery after the last fault: every partition has to accept a record, and every
group has to commit past it.
"""

import random
import time

from chaos.clients.librdkafka_producer import IDEMPOTENT, ProducerSession
from chaos.clients.librdkafka_reader import committed
from chaos.clients.options import ClientOptions, StopSignal
from chaos.history import Failure, Journal, now_ns

RECOVER_S_MAX = 60


def check_recovery(options: ClientOptions, _stop_signal: StopSignal) -> None:
    rng = random.Random(options.seed)
    journal = options.journal(0)
    session = ProducerSession(options, journal, IDEMPOTENT)
    for index in range(options.partitions):
        session.send(index, rng)
    until_s = time.monotonic() + RECOVER_S_MAX
    while session.in_flight and time.monotonic() < until_s:
        session.listen(0.1)
    if session.in_flight:
        _write_failure(journal, f"{session.in_flight} partitions accepted no record")
    else:
        for group in options.groups:
            _wait_for_group(options, group, journal, session.last_offsets)
    session.finish()


def _wait_for_group(
    options: ClientOptions, group: str, journal: Journal, last_offsets: dict[str, int]
) -> None:
    """Wait until a group has committed past these offsets."""
    until_s = time.monotonic() + RECOVER_S_MAX
    while True:
        behind = {
            index: offset
            for index, offset in committed(options, group).items()
            if offset <= last_offsets[options.partition(index)]
        }
        if not behind:
            return
        if time.monotonic() > until_s:
            _write_failure(journal, f"{group} has only committed {behind}, not past {last_offsets}")
            return
        time.sleep(0.3)


def _write_failure(journal: Journal, what: str) -> None:
    error = f"{what} within {RECOVER_S_MAX} s after the last fault"
    journal.write(Failure(journal.process, now_ns(), error))
