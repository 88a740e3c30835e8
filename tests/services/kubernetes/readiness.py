"""How many pods of a cluster were ready, looked at all the time while it is changed.

with Readiness(shop) as readiness:
    ...
assert readiness.least == 2
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

    def __init__(self, watched: Pods) -> None:
        self._watched = watched
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.counts: list[int] = []
        """How many were ready, each time that it changed."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def least(self) -> int:
        return min(self.counts)

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            count = sum(map(is_ready, self._watched.pods()))
            if self.counts[-1:] != [count]:
                self.counts.append(count)
