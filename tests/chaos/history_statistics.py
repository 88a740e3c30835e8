"""Statistics of a history: counts of operations and the longest pause."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from chaos.history import AnyEvent, Commit, CommitRead, EndRead, Merge, Poll, Send, TopicDeletion


class Pause(NamedTuple):
    """A time in which a partition acknowledged no record."""

    seconds: float
    partition: str
    began_ns: int


class Statistics(NamedTuple):
    """Counts of operations by kind, and the longest pause."""

    counts: dict[str, int]
    longest_pause: Pause

    @property
    def operations(self) -> int:
        return sum(self.counts.values())


def statistics(events: Iterable[AnyEvent]) -> Statistics:
    counts: defaultdict[str, int] = defaultdict(int)
    times_ns: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        match event:
            case Send(kind="invoke"):
                counts["sends"] += 1
            case Send(kind="ok"):
                counts["acknowledged"] += 1
                times_ns[event.partition].append(event.time_ns)
            case Send():
                counts["rejected" if event.kind == "fail" else "unknown outcome"] += 1
            case Poll():
                counts["records read"] += sum(map(len, event.records.values()))
            case Commit(kind="ok"):
                counts["commits"] += 1
            case TopicDeletion():
                counts["topic deletions"] += 1
            case Merge():
                counts["failed merges" if event.problem else "merges"] += 1
            case CommitRead() | EndRead():
                counts["queries"] += 1
    return Statistics(
        dict(counts), max(map(_longest_pause, times_ns.items()), default=Pause(0, "", 0))
    )


def _longest_pause(times_of: tuple[str, list[int]]) -> Pause:
    partition, times_ns = times_of
    times_ns = sorted(times_ns)
    gaps = [
        Pause((after - before) / 1e9, partition, before) for before, after in pairwise(times_ns)
    ]
    return max(gaps, default=Pause(0, partition, 0))
