"""Options of the workload's clients, and what all clients share."""

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


class ClientOptions(msgspec.Struct, frozen=True):
    """The role and name of a client, and its topic."""

    role: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    directory: str
    """The directory of its history."""
    seed: int
    group: str = ""
    groups: tuple[str, ...] = ()
    """The groups whose committed offsets the client fetches."""
    control: tuple[str, ...] = ()
    """The control plane addresses of brokers."""
    bucket: dict[str, str] | None = None
    """The name, endpoint and keys of the bucket."""

    def journal(self, session: int) -> Journal:
        """The history of one session: each is a separate process to the checker."""
        return Journal.open(Path(self.directory), f"{self.name}-{session}")

    def partition(self, index: int) -> str:
        return f"{self.topic}/{index}"


class StopSignal:
    """Is set when standard input is closed."""

    def __init__(self) -> None:
        self._is_stopped = threading.Event()
        threading.Thread(target=self._wait_for_end_of_input, daemon=True).start()

    @property
    def is_set(self) -> bool:
        return self._is_stopped.is_set()

    def wait(self, seconds: float) -> None:
        self._is_stopped.wait(seconds)

    def sessions(
        self, rng: random.Random, s_min: float, s_max: float
    ) -> Iterator[tuple[int, float]]:
        """Yield the number of each session and the time at which it ends."""
        for session in itertools.count():
            if self.is_set:
                return
            yield session, time.monotonic() + rng.uniform(s_min, s_max)

    def continues_until(self, until_s: float) -> bool:
        return not self.is_set and time.monotonic() < until_s

    def _wait_for_end_of_input(self) -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        self._is_stopped.set()


def encode_value(value: str, rng: random.Random) -> bytes:
    """A value with random padding, so that records have various sizes."""
    return value.encode() + END + b"." * rng.randint(0, PADDING_BYTES_MAX)


def decode_value(data: bytes) -> str:
    return data.partition(END)[0].decode()
