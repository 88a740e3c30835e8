"""The life of a pod on its node, from its volumes to its last container, and what is told of it.

A pod that is to go is stopped in good order, and then deleted from the API server; one that the API
server has forgotten is ended at once.
"""

import asyncio
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafscale.operator.kube.kinds import PODS
from services.kubernetes.kubelet import status
from services.kubernetes.kubelet.api import STRATEGIC, Api, Manifest
from services.kubernetes.kubelet.container import GRACE_S, RETRY_S, Container
from services.kubernetes.kubelet.environment import ConfigError
from services.kubernetes.kubelet.filesystem import host_name
from services.kubernetes.kubelet.network import Link
from services.kubernetes.kubelet.order import Order, Orders
from services.kubernetes.kubelet.sandbox import Sandbox
from services.kubernetes.kubelet.tasks import cancel
from services.kubernetes.kubelet.view import View
from services.kubernetes.kubelet.volumes import Volumes
from services.kubernetes.namespaces import GATEWAY


class Pod:
    """One pod, for its containers a `Home`."""

    def __init__(
        self, manifest: Manifest, api: Api, view: View, link: Link, directory: Path
    ) -> None:
        metadata, spec = manifest["metadata"], manifest["spec"]
        self.manifest = manifest
        self.uid: str = metadata["uid"]
        self.sandbox = Sandbox(host_name(manifest), link)
        self.address = link.address
        self._logs = directory / "logs" / metadata["namespace"] / metadata["name"]
        self._logs.mkdir(parents=True, exist_ok=True)
        self._news = asyncio.Event()
        self._pen = asyncio.Lock()
        self._api = api
        self._directory = directory / "pods" / self.uid
        self._path = PODS.path(metadata["namespace"], metadata["name"])
        self._volumes = Volumes(self._directory / "volumes", api, view)
        self._orders = Orders(view, self._volumes, self._directory / "roots")
        self._policy = spec.get("restartPolicy", "Always")
        of_initial = "Never" if self._policy == "Never" else "OnFailure"
        self._initial = [
            self._container(each, of_initial) for each in spec.get("initContainers", ())
        ]
        self.containers = [self._container(each, self._policy) for each in spec["containers"]]
        self.log = self._logs / "kubelet.log"
        """What went wrong that never should."""
        self._everybody = [*self._initial, *self.containers]
        self._started = status.now()
        self._conditions = status.Conditions()
        self._is_open = False
        self._reported: Mapping[str, Any] = {}
        self._ending = asyncio.Event()
        self._is_forgotten = False

    async def run(self) -> None:
        """Live to the end, and leave nothing behind."""
        reporting = asyncio.create_task(self._report_news())
        living = asyncio.create_task(self._live())
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait([living, ending, reporting], return_when=asyncio.FIRST_COMPLETED)
            if not living.done():
                await self._stop(living)
        finally:
            await cancel(living, ending)
            async with self._pen:  # A report that is on its way must not come after the last one.
                await cancel(reporting)
            await self.sandbox.close()
        if not self._is_forgotten:
            await self._report()
        await self._ending.wait()  # A pod that has done its work stays to be looked at.
        if not self._is_forgotten:
            await self._api.delete(self._path, uid=self.uid)
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    def update(self, manifest: Manifest) -> None:
        """See what has changed about it; it may have to go."""
        self.manifest = manifest
        if "deletionTimestamp" in manifest["metadata"]:
            self._ending.set()
        self.refresh()

    def refresh(self) -> None:
        """See what has changed around it."""
        if self._is_open:
            self._volumes.refresh(self._described())

    def forget(self) -> None:
        """The API server has, already: there is no grace any more."""
        self._is_forgotten = True
        self._ending.set()
        self.signal(signal.SIGKILL)

    @property
    def is_ready(self) -> bool:
        """Whether it is, before anybody else can know."""
        return not self._ending.is_set() and all(each.is_ready for each in self.containers)

    async def kill(self) -> None:
        """End what its containers run; they may run it again."""
        await asyncio.gather(*(container.kill() for container in self._everybody))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        for container in self._everybody:
            container.signal_all(number)

    def order(self, spec: Manifest) -> Order:
        """How to start one of the containers."""
        return self._orders.write(self._described(), spec, self.sandbox.process_id)

    async def _live(self) -> None:
        while True:
            try:
                await self._volumes.prepare(self._described())
                break
            except ConfigError as error:
                self._wait_for(error)
                await asyncio.sleep(RETRY_S)
        await self.sandbox.open()
        self._is_open = True
        self._news.set()
        for container in self._initial:
            await container.run()
            if container.exit_code != 0:
                return
        async with asyncio.TaskGroup() as group:
            for container in self.containers:
                group.create_task(container.run())

    def _wait_for(self, missing: ConfigError) -> None:
        waiting = {"reason": "ContainerCreating", "message": str(missing)}
        for container in self.containers:
            container.state = {"waiting": waiting}
        self._news.set()

    async def _stop(self, living: asyncio.Task[None]) -> None:
        grace_s = self.manifest["metadata"].get("deletionGracePeriodSeconds", GRACE_S)
        if self._is_forgotten:
            grace_s = 0
        await asyncio.gather(*(container.stop(grace_s) for container in self._everybody))
        if self._is_open:
            await living  # Its containers are about to tell how they ended.

    def _container(self, spec: Manifest, policy: str) -> Container:
        log = self._logs / f"{spec['name']}.log"
        return Container(spec, policy, self, log, changed=self._news.set)

    def _described(self) -> Manifest:
        """The pod as its containers are to see it, with what nobody else knows yet."""
        address = {"podIP": self.address, "hostIP": GATEWAY}
        return self.manifest | {"status": self.manifest.get("status", {}) | address}

    async def _report_news(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            async with self._pen:
                await self._report()

    async def _report(self) -> None:
        phase = status.phase(self._policy, self._initial, self.containers)
        holds = status.conditions(phase, self._initial, self.containers)
        told = {
            "phase": phase,
            "conditions": self._conditions.update(holds, phase),
            "hostIP": GATEWAY,
            "hostIPs": [{"ip": GATEWAY}],
            "startTime": self._started,
            "initContainerStatuses": [status.container_status(each) for each in self._initial],
            "containerStatuses": [status.container_status(each) for each in self.containers],
        }
        if self._is_open:
            told |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        if told != self._reported:
            patch = {"metadata": {"uid": self.uid}, "status": told}
            await self._api.patch(f"{self._path}/status", patch, STRATEGIC)
            self._reported = told
