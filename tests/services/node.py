"""A broker of a cluster that is restarted whenever it exits.

Unlike `broker.BrokerProcess` it expects nothing: a broker whose stores are unavailable may take
long to start and to stop, and may exit. `restart_if_exited` is called periodically; exits that no
test asked for are recorded in `unexpected_exits`.
"""

import signal
import subprocess
import threading
import time
from typing import NamedTuple

from services import fork_server
from services.broker import LISTENING, BrokerProcess

STOP_S_MAX = 40
"""A broker that takes longer to stop is killed, as Kubernetes does after 30 seconds."""
RESTART_DELAY_S = 0.5
"""How long to wait before a restart after an unexpected exit."""


class UnexpectedExit(NamedTuple):
    """A broker exited without a signal from the test."""

    broker_id: int
    time_ns: int
    code: int


class Node:
    """One broker; any thread may use it."""

    def __init__(self, broker_id: int, process: BrokerProcess) -> None:
        self.broker_id = broker_id
        self.broker = process
        self.unexpected_exits: list[UnexpectedExit] = []
        self._process: fork_server.Process | None = None
        self._should_run = False
        self._logged_bytes = 0
        self._exited_s = 0.0
        self._lock = threading.RLock()

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_serving(self) -> bool:
        """Whether the running process accepts clients."""
        with self._lock:
            is_alive = self._process is not None and self._process.poll() is None
            return is_alive and LISTENING in self.broker.logged(self._logged_bytes)

    def start(self) -> None:
        """Start it, and restart it after every unexpected exit."""
        with self._lock:
            self._should_run = True
            if self._process is None:
                self._launch()

    def kill(self) -> None:
        """Kill it, and do not restart it."""
        with self._lock:
            self._should_run = False
            self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Stop it, and do not restart it; return when it has stopped."""
        with self._lock:
            self._should_run = False
            self._end(signal.SIGTERM)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def restart_if_exited(self) -> None:
        """Restart the process if it has exited."""
        if not self._lock.acquire(blocking=False):
            return  # Another thread starts or stops it.
        try:
            process = self._process
            if process is not None and process.poll() is not None:
                unexpected_exit = UnexpectedExit(
                    self.broker_id, time.monotonic_ns(), process.returncode
                )
                self.unexpected_exits.append(unexpected_exit)
                self._process = None
                self._exited_s = time.monotonic()
            is_delay_over = time.monotonic() - self._exited_s > RESTART_DELAY_S
            if self._process is None and self._should_run and is_delay_over:
                self._launch()
        finally:
            self._lock.release()

    def _launch(self) -> None:
        log = self.broker.log
        self._logged_bytes = log.stat().st_size if log.exists() else 0
        self._process = self.broker.launch()

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._process is not None:
                self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
