"""A broker of a cluster under somebody's care: whatever ends it, it is started again.

Unlike `broker.BrokerProcess` it does not expect anything: a broker whose stores are away may take
its time to start and to stop, and may give up. Care is taken by `attend`, which is called again and
again; what a broker did of itself is kept in `endings`.
"""

import signal
import subprocess
import threading
import time
from typing import NamedTuple

from services.broker import LISTENING, BrokerProcess

STOP_S_MAX = 40
"""A broker that takes longer to stop is killed, as Kubernetes does after 30 seconds."""
REST_S = 0.5
"""Before a broker is started again that has ended by itself."""


class Ending(NamedTuple):
    """A broker ended though nobody asked it to."""

    broker_id: int
    time_ns: int
    code: int


class Node:
    """One broker; any thread may use it."""

    def __init__(self, broker_id: int, process: BrokerProcess) -> None:
        self.broker_id = broker_id
        self.broker = process
        self.endings: list[Ending] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._is_wanted = False
        self._logged_bytes = 0
        self._ended_s = 0.0
        self._lock = threading.RLock()

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_serving(self) -> bool:
        """Whether the broker of this life has come so far that clients can come."""
        with self._lock:
            is_alive = self._process is not None and self._process.poll() is None
            return is_alive and LISTENING in self.broker.logged(self._logged_bytes)

    def start(self) -> None:
        """Start it, and keep it running from now on."""
        with self._lock:
            self._is_wanted = True
            if self._process is None:
                self._launch()

    def kill(self) -> None:
        """End it without a chance to do anything more, and leave it so."""
        with self._lock:
            self._is_wanted = False
            self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to stop, and leave it so; it is done when this returns."""
        with self._lock:
            self._is_wanted = False
            self._end(signal.SIGTERM)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def attend(self) -> None:
        """Start it again if it has ended by itself."""
        if not self._lock.acquire(blocking=False):
            return  # Somebody else is about to start or to stop it.
        try:
            process = self._process
            if process is not None and process.poll() is not None:
                ending = Ending(self.broker_id, time.monotonic_ns(), process.returncode)
                self.endings.append(ending)
                self._process = None
                self._ended_s = time.monotonic()
            is_rested = time.monotonic() - self._ended_s > REST_S
            if self._process is None and self._is_wanted and is_rested:
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
