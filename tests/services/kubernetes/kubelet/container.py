"""The life of a container: started, watched, stopped, and started again when its pod says so.

It keeps its state in Kubernetes' own words, for the status of its pod; whoever is concerned is told
by `changed` whenever that differs from before.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from services.kubernetes.kubelet import probe
from services.kubernetes.kubelet.order import Order, StartError
from services.kubernetes.kubelet.program import Program
from services.kubernetes.kubelet.status import now
from services.kubernetes.kubelet.tasks import cancel

Manifest = Mapping[str, Any]

LAST_WORDS_BYTES_MAX = 2048
REST_S_MIN = 1
REST_S_MAX = 10
"""How long a container that ends again and again rests in between, at first and at last."""
GOOD_S = 20
"""A container that lived so long has not failed in a row."""
RETRY_S = 0.5
"""Before trying again what could not be started for want of something."""
GRACE_S = 30


class Home(Protocol):
    """What a container has to know of its pod."""

    address: str

    def order(self, spec: dict[str, Any]) -> Order:
        """How to start a container, or a `StartError`."""


class Container:
    """One container of a pod, through all its lives."""

    def __init__(
        self, spec: dict[str, Any], policy: str, home: Home, log: Path, changed: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.state: Manifest = {"waiting": {"reason": "PodInitializing"}}
        self.last_state: Manifest = {}
        self.restarts_count = 0
        self.is_started = False
        self.is_ready = False
        self._policy = policy
        self._home = home
        self._log = log
        self._changed = changed
        self._program: Program | None = None
        self._unwanted = asyncio.Event()
        self._ended = asyncio.Event()
        ports = spec.get("ports", ())
        self._ports = {port.get("name", ""): port["containerPort"] for port in ports}

    @property
    def exit_code(self) -> int | None:
        """How it ended, if it has."""
        return self.state.get("terminated", {}).get("exitCode")

    async def run(self) -> None:
        """Live, and live again, until it has ended for good."""
        rest_s = REST_S_MIN
        while not self._unwanted.is_set():
            began_s = time.monotonic()
            try:
                program = await Program.start(self._home.order(self.spec), self._log)
            except StartError as error:
                self._enter({"waiting": {"reason": error.reason, "message": str(error)}})
                await self._rest(RETRY_S)
                continue
            code = await self._live(program)
            is_over = self._policy == "Never" or (self._policy == "OnFailure" and code == 0)
            if is_over or self._unwanted.is_set():
                return
            self.last_state = self.state
            self._enter({"waiting": {"reason": "CrashLoopBackOff"}})
            if time.monotonic() - began_s > GOOD_S:
                rest_s = REST_S_MIN
            await self._rest(rest_s)
            rest_s = min(2 * rest_s, REST_S_MAX)
            self.restarts_count += 1

    async def stop(self, grace_s: float) -> None:
        """Ask it to end, make it end after the grace, and leave it so."""
        self._unwanted.set()
        program = self._program
        if program is None:
            return
        ends_s = time.monotonic() + grace_s
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook and grace_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._ask(program, hook)
        program.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ends_s - time.monotonic()):
                await self._ended.wait()
        program.signal(signal.SIGKILL)

    async def kill(self) -> None:
        """End this life at once; another one may follow."""
        if self._program is not None:
            self._program.signal(signal.SIGKILL)
            await self._ended.wait()

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        if self._program is not None:
            self._program.signal_all(number)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run another program in there; how it ended, and what it said."""
        assert self._program is not None, f"{self.spec['name']} is not running: {self.state}"
        return await self._program.execute(command)

    async def _live(self, program: Program) -> int:
        """Be watched until the end; how it ended."""
        self._program = program
        self._ended.clear()
        began = now()
        self._enter({"running": {"startedAt": began}})
        if self._unwanted.is_set():
            program.signal(signal.SIGKILL)  # Nobody could stop it while it was about to start.
        watching = asyncio.create_task(self._watch(program))
        try:
            code = await program.ended()
        finally:
            self._program = None
            self.is_started = self.is_ready = False
            self._ended.set()
            await cancel(watching)
        reason = "Completed" if code == 0 else "Error"
        ended = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": now()}
        if code and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            ended["message"] = last_words(self._log)
        self._enter({"terminated": ended})
        return code

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._unwanted.wait()

    async def _watch(self, program: Program) -> None:
        """Find out whether it has started, whether it is ready, and whether it is alive."""
        if startup := self.spec.get("startupProbe"):
            async for is_well in self._verdicts(program, startup, is_well=False):
                if is_well:
                    break
                await _end_life(program, startup)
        self.is_started = True
        self.is_ready = "readinessProbe" not in self.spec
        self._changed()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_readiness(program))
            group.create_task(self._watch_liveness(program))

    async def _watch_readiness(self, program: Program) -> None:
        if readiness := self.spec.get("readinessProbe"):
            async for is_well in self._verdicts(program, readiness, is_well=False):
                self.is_ready = is_well
                self._changed()

    async def _watch_liveness(self, program: Program) -> None:
        if liveness := self.spec.get("livenessProbe"):
            async for is_well in self._verdicts(program, liveness, is_well=True):
                if not is_well and not self._unwanted.is_set():
                    await _end_life(program, liveness)

    def _verdicts(self, program: Program, spec: Manifest, *, is_well: bool) -> probe.Verdicts:
        return probe.verdicts(spec, lambda: self._ask(program, spec), is_well=is_well)

    async def _ask(self, program: Program, handler: Manifest) -> bool:
        async def execute(command: Sequence[str]) -> int:
            code, _ = await program.execute(command)
            return code

        return await probe.ask(handler, self._home.address, self._ports, execute)

    def _enter(self, state: Manifest) -> None:
        if state != self.state:
            self.state = state
            self._changed()


def last_words(log: Path) -> str:
    """The end of a log, for whoever wonders why."""
    return log.read_bytes()[-LAST_WORDS_BYTES_MAX:].decode(errors="replace")


async def _end_life(program: Program, spec: Manifest) -> None:
    """End a program that its probe has given up."""
    program.signal(signal.SIGTERM)
    await asyncio.sleep(spec.get("terminationGracePeriodSeconds", GRACE_S))
    program.signal(signal.SIGKILL)
