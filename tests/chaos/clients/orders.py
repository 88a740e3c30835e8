"""What a client of the workload is told, and what all of them share."""

import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from chaos.history import Journal

END = b"|"
PADDING_BYTES_MAX = 1500


class Orders(msgspec.Struct, frozen=True):
    """Who a client is, and where it works."""

    role: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    directory: str
    """Where its history goes."""
    seed: int
    group: str = ""
    groups: tuple[str, ...] = ()
    """Those that somebody asks about who is in none."""

    def journal(self, life: int) -> Journal:
        """The history of one of its lives: each is a process of its own to the checker."""
        return Journal.open(Path(self.directory), f"{self.name}-{life}")

    def partition(self, index: int) -> str:
        return f"{self.topic}/{index}"


class Shift:
    """Lasts until whoever started this program closes its input."""

    def __init__(self) -> None:
        self._over = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def rest(self, seconds: float) -> None:
        self._over.wait(seconds)

    def lives(
        self, chance: random.Random, s_min: float, s_max: float
    ) -> Iterator[tuple[int, float]]:
        """Numbers of lives, one after the other, and when each ends."""
        for life in itertools.count():
            if self.is_over:
                return
            yield life, time.monotonic() + chance.uniform(s_min, s_max)

    def goes_on(self, until_s: float) -> bool:
        return not self.is_over and time.monotonic() < until_s

    def _listen(self) -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        self._over.set()


def written(value: str, chance: random.Random) -> bytes:
    """A value as it is sent: with something behind it, so that records are of all sizes."""
    return value.encode() + END + b"." * chance.randint(0, PADDING_BYTES_MAX)


def value_of(data: bytes) -> str:
    return data.partition(END)[0].decode()
