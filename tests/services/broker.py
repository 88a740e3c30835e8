"""A broker as a process of its own, on a data directory and a port that outlive it.

    with BrokerProcess(tmp_path) as broker:
        ...
        broker.kill()
        broker.start()

It is stopped when the block ends. What it wrote to its log is kept in the directory, across its
restarts, and is part of the error if it does not start.
"""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from services import fork_server
from services.process import free_port

HOST = "127.0.0.1"
START_S_MAX = 60
STOP_S_MAX = 30
LISTENING = "broker listening on "


class BrokerProcess:
    """One broker, which can be killed and restarted."""

    def __init__(self, directory: Path, **settings: str) -> None:
        """`settings` are environment variables without their prefix: `segment_bytes="65536"`."""
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "broker.log"
        self.port = free_port()
        self.metrics_port = free_port()
        self.control_port = free_port()
        self.settings = settings
        self._process: fork_server.Process | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.terminate()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def control_address(self) -> str:
        return f"{HOST}:{self.control_port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def metrics_url(self) -> str:
        return f"http://{HOST}:{self.metrics_port}"

    def start(self) -> Self:
        """Start, and wait until the broker accepts clients."""
        assert self._process is None, "it runs already"
        logged_bytes = self.log.stat().st_size if self.log.exists() else 0
        self._process = self.launch()
        deadline = time.monotonic() + START_S_MAX
        while LISTENING not in self.logged(logged_bytes):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker does not listen: {self.logged(logged_bytes)}")
            time.sleep(0.02)
        return self

    def launch(self) -> fork_server.Process:
        """Only start the process; the caller has to stop it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return fork_server.start(["broker"], environment=self._environment(), output=self.log)

    def kill(self) -> None:
        """Kill it, as by a loss of power."""
        process = self._take()
        process.send_signal(signal.SIGKILL)
        process.wait(STOP_S_MAX)

    def terminate(self) -> float:
        """Ask it to stop, which must end well; how many seconds it took."""
        process = self._take()
        began = time.monotonic()
        process.terminate()
        try:
            code = process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert code == 0, f"the broker ended with {code}: {self.logged()[-4000:]}"
        return time.monotonic() - began

    def wait(self) -> int:
        """Wait for the process to exit, and return its exit code."""
        process = self._take()
        try:
            return process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def logged(self, since_bytes: int = 0) -> str:
        with self.log.open("rb") as log:
            log.seek(since_bytes)
            return log.read().decode(errors="replace")

    def http(self, path: str) -> tuple[int, str]:
        """The status and the body that the port for metrics and health answers with."""
        try:
            with urllib.request.urlopen(self.metrics_url + path, timeout=5) as response:  # noqa: S310
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ready(self) -> dict[str, Any]:
        return dict(json.loads(self.http("/readyz")[1]))

    def objects(self, pattern: str) -> list[Path]:
        """The objects whose paths match, such as `**/topic/0/*.kfs`."""
        return sorted(path for path in self.data.glob(pattern) if path.is_file())

    def _take(self) -> fork_server.Process:
        assert self._process is not None, "it does not run"
        process, self._process = self._process, None
        return process

    def _environment(self) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("KAFSCALE_")
        }
        own = {
            "data_dir": str(self.data),
            "broker_host": HOST,
            "broker_port": str(self.port),
            "broker_metrics_host": HOST,
            "broker_metrics_port": str(self.metrics_port),
            "broker_control_port": str(self.control_port),
        }
        settings = {
            f"KAFSCALE_{name.upper()}": text for name, text in (own | self.settings).items()
        }
        return inherited | settings
