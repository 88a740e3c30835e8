"""Nodes for a control plane without any: pods are processes of this machine.

    with Kubelet(plane.kubeconfig, tmp_path) as kubelet:
        kubelet.wait_ready(namespace, "web-0")
        kubelet.kill(namespace, "web-0")

It schedules pods, runs, probes and reports them, gives them volumes, names and addresses, and
routes Services to them. This process can resolve the names, too. It runs in its own thread, and
only inside of `namespaces`, since it changes the network.
"""

import asyncio
import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, TypeVar

from services.kubernetes import namespaces
from services.kubernetes.kube_client import has_condition
from services.kubernetes.kubelet.agent import Agent
from services.kubernetes.kubelet.api import Api
from services.kubernetes.kubelet.nodes import ZONES
from services.kubernetes.kubelet.pod import Pod
from services.kubernetes.namespaces import GATEWAY
from services.waiting import wait_until

RESOLVER = Path("/etc/resolv.conf")
READY_S_MAX = 30
STOP_S_MAX = 20
LOG_SHOWN_MAX = 4000

_Result = TypeVar("_Result")


class Kubelet:
    """All nodes of a cluster; thread-safe."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        assert namespaces.is_inside(), "a kubelet changes the network and names around it"
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._agent: Agent | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._started: Future[None] = Future()
        self._stopped: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        self._started.result(READY_S_MAX)
        resolver = self._directory / "resolv.conf"
        resolver.write_text(f"nameserver {GATEWAY}\nsearch svc.cluster.local cluster.local\n")
        subprocess.run(["mount", "--bind", resolver, RESOLVER], check=True)  # noqa: S603, S607
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", RESOLVER], check=True)  # noqa: S603, S607
        assert self._loop is not None
        assert self._work is not None
        self._loop.call_soon_threadsafe(self._work.cancel)
        self._stopped.result(STOP_S_MAX)
        self._thread.join()

    def wait_ready(self, namespace: str, name: str, *, seconds_max: float = 40) -> None:
        """Return when a pod is ready, and the API server knows."""
        wait_until(
            lambda: self._is_ready_now(namespace, name),
            f"{namespace}/{name} to be ready",
            seconds_max=seconds_max,
            seen=lambda: self._report(namespace, name),
        )

    def logs(self, namespace: str, name: str, container: str = "*") -> str:
        """The logs of a pod's containers, including earlier ones; `*` means all containers."""
        files = sorted((self._directory / "logs" / namespace).glob(f"{name}/{container}.log"))
        return "".join(file.read_text(errors="replace") for file in files)

    def kill(self, namespace: str, name: str) -> None:
        """Kill all processes of a pod; its containers may be restarted."""
        self._call(self._pod(namespace, name).kill())

    def pause(self, namespace: str, name: str) -> None:
        self._signal(namespace, name, signal.SIGSTOP)

    def resume(self, namespace: str, name: str) -> None:
        self._signal(namespace, name, signal.SIGCONT)

    def partition(self, namespace: str, name: str) -> None:
        """Drop all traffic from and to a pod."""
        self._call(self._pod(namespace, name).sandbox.link.disconnect())

    def heal(self, namespace: str, name: str) -> None:
        self._call(self._pod(namespace, name).sandbox.link.reconnect())

    def execute(self, namespace: str, name: str, *command: str) -> tuple[int, str]:
        """Run a program in the first container of a pod; return its exit code and output."""
        return self._call(self._pod(namespace, name).containers[0].execute(command))

    def _is_ready_now(self, namespace: str, name: str) -> bool:
        assert self._agent is not None
        pod = self._agent.find(namespace, name)
        return pod is not None and pod.is_ready and has_condition(pod.manifest, "Ready")

    def _report(self, namespace: str, name: str) -> str:
        """Status and logs of a pod, for a timeout."""
        assert self._agent is not None
        manifest = self._agent.view.pods.get(namespace, name)
        status = json.dumps(manifest and manifest.get("status"))
        return f"{status}\n{self.logs(namespace, name)[-LOG_SHOWN_MAX:]}"

    def _signal(self, namespace: str, name: str, number: signal.Signals) -> None:
        self._pod(namespace, name).signal(number)

    def _pod(self, namespace: str, name: str) -> Pod:
        assert self._agent is not None
        pod = self._agent.find(namespace, name)
        assert pod is not None, f"{namespace}/{name} is on no node"
        return pod

    def _call(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread.
            if not self._started.done():
                self._started.set_exception(error)
            self._stopped.set_exception(error)
        else:
            self._stopped.set_result(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with Api(self._kubeconfig) as api:
            self._agent = Agent(api, self._directory, ZONES)
            work = self._agent.run(lambda: self._started.set_result(None))
            self._work = asyncio.create_task(work)
            with contextlib.suppress(asyncio.CancelledError):
                await self._work
