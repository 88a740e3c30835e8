"""Random histories of a correct cluster under faults.

Sends are appended or not, acknowledged or not; producers without idempotence repeat records;
readers seek, and members of a group continue from committed offsets.
"""

import random
from collections import defaultdict, deque

from chaos.history import (
    AnyEvent,
    Commit,
    CommitRead,
    Consumer,
    EndRead,
    Move,
    Poll,
    Producer,
    Send,
)

PARTITIONS = ("topic/0", "topic/1")
PRODUCERS = {"idempotent-1": True, "idempotent-2": True, "plain": False}
READERS = ("reader", "seeker")
MEMBERS = ("first", "second")
GROUP = "group"


class SimulatedCluster:
    """A log for each partition, with its producers, readers and group members."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_ns = 0
        self.events: list[AnyEvent] = []
        self._logs: dict[str, list[str]] = {name: [] for name in PARTITIONS}
        self._pending: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)
        self._cursors = {(name, part): 0 for name in READERS + MEMBERS for part in PARTITIONS}
        self._owners = dict.fromkeys(PARTITIONS, MEMBERS[0])
        self._committed = dict.fromkeys(PARTITIONS, -1)
        self._sent_count = 0
        for name, is_idempotent in PRODUCERS.items():
            self._record(Producer(name, self._later(), is_idempotent, keeps_order=True))
        for name in READERS:
            self._record(Consumer(name, self._later()))
        for name in MEMBERS:
            self._record(Consumer(name, self._later(), group=GROUP))
        self._record(Consumer("final", self._later(), is_final=True))

    def run(self, steps: int) -> list[AnyEvent]:
        actions = [self._invoke] * 4 + [self._end] * 4 + [self._read, self._group_read] * 2
        actions += [self._move, self._rebalance, self._query_end, self._query_commit]
        for _ in range(steps):
            self._rng.choice(actions)()
        for name, log in self._logs.items():
            self._poll("final", name, 0, len(log))
        return self.events

    # --- producers ----------------------------------------------------------------------------

    def _invoke(self) -> None:
        process, partition = self._rng.choice(list(PRODUCERS)), self._rng.choice(PARTITIONS)
        self._sent_count += 1
        value = f"{process}:{self._sent_count}"
        self._record(Send(process, self._later(), "invoke", partition, value))
        self._pending[process, partition].append(value)

    def _end(self) -> None:
        """Complete the oldest send of a producer, with any outcome."""
        waiting = [key for key, values in self._pending.items() if values]
        if not waiting:
            return
        process, partition = self._rng.choice(waiting)
        value = self._pending[process, partition].popleft()
        log = self._logs[partition]
        way = self._rng.choice(["ok", "ok", "ok", "ok", "kept", "gone", "fail", "silence"])
        if way in {"ok", "kept"} or (way == "silence" and self._rng.random() < 0.5):
            copies = 1 if PRODUCERS[process] else self._rng.choice([1, 1, 2])
            log.extend([value] * copies)
        if way == "ok":
            self._record(Send(process, self._later(), "ok", partition, value, len(log) - 1))
        elif way == "fail":
            self._record(Send(process, self._later(), "fail", partition, value, error="refused"))
        elif way != "silence":
            self._record(Send(process, self._later(), "info", partition, value, error="who knows"))

    # --- readers ------------------------------------------------------------------------------

    def _read(self) -> None:
        process, partition = self._rng.choice(READERS), self._rng.choice(PARTITIONS)
        self._poll_some(process, partition)

    def _poll_some(self, process: str, partition: str) -> int:
        start = self._cursors[process, partition]
        end = min(len(self._logs[partition]), start + self._rng.randint(1, 5))
        self._poll(process, partition, start, end)
        self._cursors[process, partition] = end
        return end

    def _poll(self, process: str, partition: str, start: int, end: int) -> None:
        records = list(enumerate(self._logs[partition][start:end], start))
        if records:
            self._record(Poll(process, self._later(), {partition: records}))

    def _move(self) -> None:
        partition = self._rng.choice(PARTITIONS)
        self._cursors["seeker", partition] = self._rng.randint(0, len(self._logs[partition]))
        self._record(Move("seeker", self._later(), (partition,)))

    def _group_read(self) -> None:
        partition = self._rng.choice(PARTITIONS)
        owner = self._owners[partition]
        end = self._poll_some(owner, partition)
        way = self._rng.choice(["ok", "ok", "info", "none"])
        if way == "none" or not end:
            return
        if way == "ok" or self._rng.random() < 0.5:
            self._committed[partition] = end
        kind = "ok" if way == "ok" else "info"
        self._record(Commit(owner, self._later(), kind, GROUP, partition, end))

    def _rebalance(self) -> None:
        partition, owner = self._rng.choice(PARTITIONS), self._rng.choice(MEMBERS)
        self._owners[partition] = owner
        self._cursors[owner, partition] = max(self._committed[partition], 0)
        self._record(Move(owner, self._later(), (partition,)))

    # --- queries ------------------------------------------------------------------------------

    def _query_end(self) -> None:
        partition, began_ns = self._rng.choice(PARTITIONS), self._later()
        end = len(self._logs[partition])
        self._record(EndRead("reader", self._later(), began_ns, partition, end))

    def _query_commit(self) -> None:
        partition, began_ns = self._rng.choice(PARTITIONS), self._later()
        offset = self._committed[partition]
        self._record(CommitRead("reader", self._later(), began_ns, GROUP, partition, offset))

    def _later(self) -> int:
        self._now_ns += self._rng.randint(1, 1000)
        return self._now_ns

    def _record(self, event: AnyEvent) -> None:
        self.events.append(event)
