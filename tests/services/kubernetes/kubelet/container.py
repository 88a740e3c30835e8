"""A container: started, probed, stopped, and restarted by the policy of its pod.

Its state is in the terms of Kubernetes, for the status of its pod; `changed` is called whenever it
differs.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from services.kubernetes.kubelet import probe
from services.kubernetes.kubelet.container_spec import ContainerSpec, StartError
from services.kubernetes.kubelet.program import Program
from services.kubernetes.kubelet.status import now
from services.kubernetes.kubelet.tasks import cancel

Manifest = Mapping[str, Any]

MESSAGE_BYTES_MAX = 2048
BACKOFF_S_MIN = 1
BACKOFF_S_MAX = 10
"""The first and the longest delay before a failing container is restarted."""
STABLE_S = 20
"""A container that ran this long resets the backoff."""
RETRY_S = 0.5
"""The delay before a start is retried that lacks something."""
GRACE_S = 30


class PodContext(Protocol):
    """What a container needs to know of its pod."""

    address: str

    def container_spec(self, spec: dict[str, Any]) -> ContainerSpec:
        """How to start a container; raises `StartError`."""


class Container:
    """One container of a pod, through all restarts."""

    def __init__(
        self,
        spec: dict[str, Any],
        policy: str,
        pod: PodContext,
        log: Path,
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.state: Manifest = {"waiting": {"reason": "PodInitializing"}}
        self.last_state: Manifest = {}
        self.restarts_count = 0
        self.is_started = False
        self.is_ready = False
        self._policy = policy
        self._pod = pod
        self._log = log
        self._changed = changed
        self._program: Program | None = None
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        ports = spec.get("ports", ())
        self._ports = {port.get("name", ""): port["containerPort"] for port in ports}

    @property
    def exit_code(self) -> int | None:
        """The exit code, if it has terminated."""
        return self.state.get("terminated", {}).get("exitCode")

    async def run(self) -> None:
        """Run and restart until it has terminated finally."""
        backoff_s = BACKOFF_S_MIN
        while not self._stopping.is_set():
            started_s = time.monotonic()
            try:
                program = await Program.start(self._pod.container_spec(self.spec), self._log)
            except StartError as error:
                self._enter({"waiting": {"reason": error.reason, "message": str(error)}})
                await self._sleep(RETRY_S)
                continue
            code = await self._run_once(program)
            is_final = self._policy == "Never" or (self._policy == "OnFailure" and code == 0)
            if is_final or self._stopping.is_set():
                return
            self.last_state = self.state
            self._enter({"waiting": {"reason": "CrashLoopBackOff"}})
            if time.monotonic() - started_s > STABLE_S:
                backoff_s = BACKOFF_S_MIN
            await self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)
            self.restarts_count += 1

    async def stop(self, grace_s: float) -> None:
        """Terminate it, kill it after the grace period, and do not restart it."""
        self._stopping.set()
        program = self._program
        if program is None:
            return
        ends_s = time.monotonic() + grace_s
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook and grace_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._request(program, hook)
        program.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ends_s - time.monotonic()):
                await self._ended.wait()
        program.signal(signal.SIGKILL)

    async def kill(self) -> None:
        """Kill its processes; it may be restarted."""
        if self._program is not None:
            self._program.signal(signal.SIGKILL)
            await self._ended.wait()

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        if self._program is not None:
            self._program.signal_all(number)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run another program inside; return its exit code and output."""
        assert self._program is not None, f"{self.spec['name']} is not running: {self.state}"
        return await self._program.execute(command)

    async def _run_once(self, program: Program) -> int:
        """Run the probes until it exits; return the exit code."""
        self._program = program
        self._ended.clear()
        started_at = now()
        self._enter({"running": {"startedAt": started_at}})
        if self._stopping.is_set():
            program.signal(signal.SIGKILL)  # It was stopped while starting.
        watching = asyncio.create_task(self._watch(program))
        try:
            code = await program.ended()
        finally:
            self._program = None
            self.is_started = self.is_ready = False
            self._ended.set()
            await cancel(watching)
        reason = "Completed" if code == 0 else "Error"
        ended = {"exitCode": code, "reason": reason, "startedAt": started_at, "finishedAt": now()}
        if code and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            ended["message"] = last_log_lines(self._log)
        self._enter({"terminated": ended})
        return code

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _watch(self, program: Program) -> None:
        """Run the startup probe, then the readiness and liveness probes."""
        if startup := self.spec.get("startupProbe"):
            async for is_healthy in self._probe_results(program, startup, is_healthy=False):
                if is_healthy:
                    break
                await _terminate(program, startup)
        self.is_started = True
        self.is_ready = "readinessProbe" not in self.spec
        self._changed()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_readiness(program))
            group.create_task(self._watch_liveness(program))

    async def _watch_readiness(self, program: Program) -> None:
        if readiness := self.spec.get("readinessProbe"):
            async for is_healthy in self._probe_results(program, readiness, is_healthy=False):
                self.is_ready = is_healthy
                self._changed()

    async def _watch_liveness(self, program: Program) -> None:
        if liveness := self.spec.get("livenessProbe"):
            async for is_healthy in self._probe_results(program, liveness, is_healthy=True):
                if not is_healthy and not self._stopping.is_set():
                    await _terminate(program, liveness)

    def _probe_results(
        self, program: Program, spec: Manifest, *, is_healthy: bool
    ) -> probe.Results:
        return probe.results(spec, lambda: self._request(program, spec), is_healthy=is_healthy)

    async def _request(self, program: Program, handler: Manifest) -> bool:
        async def execute(command: Sequence[str]) -> int:
            code, _ = await program.execute(command)
            return code

        return await probe.run_handler(handler, self._pod.address, self._ports, execute)

    def _enter(self, state: Manifest) -> None:
        if state != self.state:
            self.state = state
            self._changed()


def last_log_lines(log: Path) -> str:
    """The end of a log."""
    return log.read_bytes()[-MESSAGE_BYTES_MAX:].decode(errors="replace")


async def _terminate(program: Program, spec: Manifest) -> None:
    """Terminate a program whose probe failed."""
    program.signal(signal.SIGTERM)
    await asyncio.sleep(spec.get("terminationGracePeriodSeconds", GRACE_S))
    program.signal(signal.SIGKILL)
