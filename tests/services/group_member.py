"""A member of a consumer group in its own process, which can leave, and can be killed.

    member = Member(Client("librdkafka", "range"), "member-0", MemberOptions(...), directory)
    ...
    member.leave()

A thread parses the events that the member prints, and appends them to `events`.
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
from services.group_history import MemberHistory, owned
from services.member_events import AnyEvent, Failed, decode_event, now_ms
from services.members import verifiable
from services.members.options import MemberOptions

TESTS = Path(__file__).parents[1]
LEAVE_S_MAX = 30


class Client(NamedTuple):
    """A client library and its assignment strategy."""

    library: str
    """`java`, a client of `client_program`, or the name of a program in `services.members`."""
    strategy: str

    @property
    def is_incremental(self) -> bool:
        """Whether members keep partitions during a rebalance (KIP-429, KIP-848)."""
        return self.strategy in ("cooperative-sticky", "consumer")

    @property
    def finishes_before_revoke(self) -> bool:
        """Whether members finish a revoked partition's records before others own it."""
        return self.library != "kafkago"

    @property
    def is_available(self) -> bool:
        if self.library in FOREIGN_CLIENTS:
            return missing_for(self.library) is None
        return self.library != "java" or java.is_available()

    def __str__(self) -> str:
        return f"{self.library}-{self.strategy}"


class Member:
    """One member: one process, never restarted."""

    def __init__(self, client: Client, name: str, options: MemberOptions, directory: Path) -> None:
        self.name = name
        self.events: list[AnyEvent] = []
        self._killed_ms: int | None = None
        member_directory = directory / name
        member_directory.mkdir(parents=True)
        self._log = member_directory / "log"
        command: Sequence[str | Path]
        read: Callable[[str], Iterable[AnyEvent]]
        if client.library == "java":
            command, read = verifiable.command(options, member_directory), verifiable.events_of
        else:
            options = msgspec.json.encode(options).decode()
            command = [*_program(client.library), options]
            read = _parse_event
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own.
                command,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._reader = threading.Thread(target=self._read_events, args=[read])
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
    def history(self) -> MemberHistory:
        return MemberHistory(self.name, tuple(self.events), self._killed_ms)

    @property
    def owned(self) -> set[int]:
        return owned(self.history.events)

    @property
    def failures(self) -> list[str]:
        return [event.error for event in self.history.events if isinstance(event, Failed)]

    def leave(self) -> None:
        """Stop the member; it leaves the group before it exits."""
        self.send_stop_signal()
        self.wait_until_left()

    def send_stop_signal(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait_until_left(self) -> None:
        code = self._process.wait(LEAVE_S_MAX)
        self._reader.join()
        assert code in (0, 128 + signal.SIGTERM), f"{self.name} ended with {code}: {self.logged()}"

    def kill(self) -> None:
        """Kill the process; the coordinator notices by the session timeout."""
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

    def _read_events(self, read: Callable[[str], Iterable[AnyEvent]]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # A killed member may leave an incomplete last line.
                    self.events += read(line)


def _program(library: str) -> Sequence[str | Path]:
    if library in FOREIGN_CLIENTS:
        return member_command(library)
    return [sys.executable, "-m", f"services.members.{library}"]


def _parse_event(line: str) -> Iterable[AnyEvent]:
    return (decode_event(line),)
