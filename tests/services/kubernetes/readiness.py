"""Counts the ready pods of a cluster continuously while it is changed.

with Readiness(shop) as readiness:
    ...
assert readiness.minimum == 2
"""

import threading
from typing import Protocol, Self

from services.kubernetes.deployed import is_ready
from services.kubernetes.kube_client import Manifest

PAUSE_S = 0.1


class Pods(Protocol):
    """The brokers of a cluster, or the members of its etcd."""

    def pods(self) -> list[Manifest]: ...


class Readiness:
    """A thread that counts until the block ends."""

    def __init__(self, source: Pods) -> None:
        self._source = source
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.counts: list[int] = []
        """The number of ready pods, at each change."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    @property
    def minimum(self) -> int:
        return min(self.counts)

    def _run(self) -> None:
        while not self._is_stopped.wait(PAUSE_S):
            count = sum(map(is_ready, self._source.pods()))
            if self.counts[-1:] != [count]:
                self.counts.append(count)
