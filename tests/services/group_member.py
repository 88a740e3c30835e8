"""A member of a consumer group as a process of its own, which can leave, and can be killed.

    member = Member(Client("librdkafka", "range"), Orders(...), directory)
    ...
    member.leave()

What it tells is read as it comes, into `events`.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from services import java
from services.client_program import FOREIGN_CLIENTS, member_command, missing_for
from services.group_history import Life, owned
from services.member_events import AnyEvent, Failed, event_of, now_ms
from services.members import verifiable
from services.members.orders import Orders

TESTS = Path(__file__).parents[1]
LEAVE_S_MAX = 30


class Client(NamedTuple):
    """A client library, and the way in which a group of it shares out partitions."""

    library: str
    """`java`, a client of `client_program`, or the name of a program in `services.members`."""
    strategy: str

    @property
    def is_incremental(self) -> bool:
        """Whether members keep what they have while others come and go."""
        return self.strategy in ("cooperative-sticky", "consumer")

    @property
    def is_orderly(self) -> bool:
        """Whether members are done with what they give up before others have it."""
        return self.library != "kafkago"

    @property
    def is_available(self) -> bool:
        if self.library in FOREIGN_CLIENTS:
            return missing_for(self.library) is None
        return self.library != "java" or java.is_available()

    def __str__(self) -> str:
        return f"{self.library}-{self.strategy}"


class Member:
    """One member through its only life."""

    def __init__(self, client: Client, name: str, orders: Orders, directory: Path) -> None:
        self.name = name
        self.events: list[AnyEvent] = []
        self._killed_ms: int | None = None
        room = directory / name
        room.mkdir(parents=True)
        self._log = room / "log"
        command: Sequence[str | Path]
        read: Callable[[str], Iterable[AnyEvent]]
        if client.library == "java":
            command, read = verifiable.command(orders, room), verifiable.events_of
        else:
            told = msgspec.json.encode(orders).decode()
            command = [*_program(client.library), told]
            read = _our_events
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own.
                command,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._reader = threading.Thread(target=self._listen, args=[read])
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running:
            self._process.kill()
        self._process.wait()
        self._reader.join()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def life(self) -> Life:
        return Life(self.name, tuple(self.events), self._killed_ms)

    @property
    def owned(self) -> set[int]:
        return owned(self.life.events)

    @property
    def failures(self) -> list[str]:
        return [event.error for event in self.life.events if isinstance(event, Failed)]

    def leave(self) -> None:
        """Leave in order: the group hears of it at once."""
        self.begin_to_leave()
        self.finish_leaving()

    def begin_to_leave(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def finish_leaving(self) -> None:
        code = self._process.wait(LEAVE_S_MAX)
        self._reader.join()
        assert code in (0, 128 + signal.SIGTERM), f"{self.name} ended with {code}: {self.logged()}"

    def kill(self) -> None:
        """Vanish, without a chance to do anything more."""
        self._process.kill()
        self._killed_ms = now_ms()
        self._process.wait()
        self._reader.join()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def logged(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def _listen(self, read: Callable[[str], Iterable[AnyEvent]]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # The last one of a member that is killed may be cut off.
                    self.events += read(line)


def _program(library: str) -> Sequence[str | Path]:
    if library in FOREIGN_CLIENTS:
        return member_command(library)
    return [sys.executable, "-m", f"services.members.{library}"]


def _our_events(line: str) -> Iterable[AnyEvent]:
    return (event_of(line),)
