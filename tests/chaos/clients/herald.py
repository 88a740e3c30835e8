"""All is well again, and this is who finds out: every partition has to take a record, and every
group has to come that far."""

import random
import time

from chaos.clients.librdkafka_producer import IDEMPOTENT, Life
from chaos.clients.librdkafka_reader import committed
from chaos.clients.orders import Orders, Shift
from chaos.history import Failure, Journal, now_ns

RECOVER_S_MAX = 60


def proclaim(orders: Orders, _shift: Shift) -> None:
    chance = random.Random(orders.seed)
    journal = orders.journal(0)
    life = Life(orders, journal, IDEMPOTENT)
    for index in range(orders.partitions):
        life.send(index, chance)
    until_s = time.monotonic() + RECOVER_S_MAX
    while life.unanswered and time.monotonic() < until_s:
        life.listen(0.1)
    if life.unanswered:
        _complain(journal, f"{life.unanswered} partitions took no record")
    else:
        for group in orders.groups:
            _follow(orders, group, journal, life.placed)
    life.finish()


def _follow(orders: Orders, group: str, journal: Journal, placed: dict[str, int]) -> None:
    """Wait for a group to come past these offsets."""
    until_s = time.monotonic() + RECOVER_S_MAX
    while True:
        behind = {
            index: offset
            for index, offset in committed(orders, group).items()
            if offset <= placed[orders.partition(index)]
        }
        if not behind:
            return
        if time.monotonic() > until_s:
            _complain(journal, f"{group} is only at {behind}, behind {placed}")
            return
        time.sleep(0.3)


def _complain(journal: Journal, what: str) -> None:
    error = f"{what} within {RECOVER_S_MAX} s after everything was put right"
    journal.write(Failure(journal.process, now_ns(), error))
