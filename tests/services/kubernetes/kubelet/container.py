"""The life of a container: started, watched, stopped, and started again when its pod says so.

It keeps its state in Kubernetes' own words, for the status of its pod; whoever is concerned is told
by `changed` whenever that differs from before.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from services.kubernetes.kubelet import probe
from services.kubernetes.kubelet.order import Order, StartError
from services.kubernetes.kubelet.sandbox import SHIM
from services.kubernetes.kubelet.status import now
from services.kubernetes.kubelet.tasks import cancel

Manifest = Mapping[str, Any]

REST_S_MIN = 1
REST_S_MAX = 10
"""How long a container that ends again and again rests in between, at first and at last."""
GOOD_S = 20
"""A container that lived so long has not failed in a row."""
RETRY_S = 0.5
"""Before trying again what could not be started for want of something."""


class Home(Protocol):
    """What a container has to know of its pod."""

    address: str

    def order(self, spec: Manifest) -> Order:
        """How to start a container, or a `StartError`."""


class Container:
    """One container of a pod, through all its lives."""

    def __init__(
        self, spec: Manifest, policy: str, home: Home, log: Path, changed: Callable[[], None]
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
        self._shim: asyncio.subprocess.Process | None = None
        self._process_id = 0
        self._environment: Mapping[str, str] = {}
        self._unwanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._ports = {
            port.get("name", ""): port["containerPort"] for port in spec.get("ports", ())
        }

    @property
    def exit_code(self) -> int | None:
        """How it ended, if it has."""
        return self.state.get("terminated", {}).get("exitCode")

    async def run(self) -> None:
        """Live, and live again, until it has ended for good."""
        rest_s = REST_S_MIN
        while not self._unwanted.is_set():
            try:
                began_s = await self._start()
            except StartError as error:
                self._enter({"waiting": {"reason": error.reason, "message": str(error)}})
                await self._rest(RETRY_S)
                continue
            code = await self._live()
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
        if self._shim is None:
            return
        ends_s = time.monotonic() + grace_s
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook and grace_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ask(hook), grace_s)
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(ends_s - time.monotonic(), 0))
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process."""
        if self._process_id:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process_id, number)

    def processes(self) -> list[int]:
        """All its processes."""
        if not self._process_id:
            return []
        space = _space(self._process_id)
        numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [number for number in numbers if space and _space(number) == space]

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run another program in there; how it ended, and what it said."""
        entered = await asyncio.create_subprocess_exec(
            "nsenter", f"--target={self._process_id}",
            "--mount", "--uts", "--ipc", "--net", "--pid", "--", *command,
            env=dict(self._environment), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = await entered.communicate()
        except asyncio.CancelledError:
            entered.kill()
            await entered.communicate()
            raise
        assert entered.returncode is not None
        return entered.returncode, said.decode(errors="replace")

    async def _start(self) -> float:
        """Begin a life; when that was."""
        order = self._home.order(self.spec)
        reading, writing = os.pipe()
        with self._log.open("ab") as log:
            shim = await asyncio.create_subprocess_exec(
                *SHIM, "container", str(writing), pass_fds=[writing],
                stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        os.close(writing)
        try:
            assert shim.stdin is not None
            shim.stdin.write(msgspec.json.encode(order))
            shim.stdin.close()
            number, _, complaint = (await _read(reading)).decode().partition("\n")
        except asyncio.CancelledError:
            shim.kill()
            await shim.wait()
            raise
        if complaint or not number:
            await shim.wait()
            raise StartError("RunContainerError", complaint or "the shim has failed: see its log")
        self._shim, self._process_id = shim, int(number)
        self._environment = order.environment
        self._ended.clear()
        self._enter({"running": {"startedAt": now()}})
        return time.monotonic()

    async def _live(self) -> int:
        """Be watched until the end; how it ended."""
        assert self._shim is not None
        if self._unwanted.is_set():
            self.signal(signal.SIGKILL)  # Nobody could stop it while it was about to start.
        watching = asyncio.create_task(self._watch())
        try:
            code = await self._shim.wait()
        except asyncio.CancelledError:
            self.signal(signal.SIGKILL)
            await self._shim.wait()
            raise
        finally:
            self._shim, self._process_id = None, 0
            self._ended.set()
            await cancel(watching)
            self.is_started = self.is_ready = False
        began = self.state["running"]["startedAt"]
        reason = "Completed" if code == 0 else "Error"
        ended = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": now()}
        self._enter({"terminated": ended})
        return code

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._unwanted.wait(), seconds)

    async def _watch(self) -> None:
        """Find out whether it has started, whether it is ready, and whether it is alive."""
        if startup := self.spec.get("startupProbe"):
            async for is_well in probe.verdicts(startup, self._check(startup), is_well=False):
                if is_well:
                    break
                await self._end_life(startup)
        self.is_started = True
        readiness, liveness = self.spec.get("readinessProbe"), self.spec.get("livenessProbe")
        self.is_ready = readiness is None
        self._changed()
        async with asyncio.TaskGroup() as group:
            if readiness:
                group.create_task(self._watch_readiness(readiness))
            if liveness:
                group.create_task(self._watch_liveness(liveness))

    async def _watch_readiness(self, spec: Manifest) -> None:
        async for is_well in probe.verdicts(spec, self._check(spec), is_well=False):
            self.is_ready = is_well
            self._changed()

    async def _watch_liveness(self, spec: Manifest) -> None:
        async for is_well in probe.verdicts(spec, self._check(spec), is_well=True):
            if not is_well and not self._unwanted.is_set():
                await self._end_life(spec)

    async def _end_life(self, spec: Manifest) -> None:
        """End this life, but not the container's."""
        grace_s = spec.get("terminationGracePeriodSeconds", 30)
        self.signal(signal.SIGTERM)
        await asyncio.sleep(grace_s)
        self.signal(signal.SIGKILL)

    def _check(self, spec: Manifest) -> probe.Check:
        return lambda: self._ask(spec)

    async def _ask(self, handler: Manifest) -> bool:
        async def execute(command: Sequence[str]) -> int:
            return (await self.execute(command))[0]

        return await probe.ask(handler, self._home.address, self._ports, execute)

    def _enter(self, state: Manifest) -> None:
        if state != self.state:
            self.state = state
            self._changed()


async def _read(descriptor: int) -> bytes:
    """All that comes out of a pipe."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    try:
        return await reader.read()
    finally:
        transport.close()


def _space(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/ns/pid").readlink().name
    except OSError:
        return ""
