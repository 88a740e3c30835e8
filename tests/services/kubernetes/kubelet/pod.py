"""A pod on its node, from its volumes to its last container, and its status.

A deleted pod is stopped gracefully, then deleted from the API server. A pod that the API server no
longer has is killed at once.
"""

import asyncio
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafscale.operator.kube.api import PODS
from services.kubernetes.kubelet import status
from services.kubernetes.kubelet.api import STRATEGIC, Api, Manifest
from services.kubernetes.kubelet.cluster_cache import ClusterCache
from services.kubernetes.kubelet.container import GRACE_S, RETRY_S, Container
from services.kubernetes.kubelet.container_spec import ContainerSpec, ContainerSpecs
from services.kubernetes.kubelet.environment import ConfigError
from services.kubernetes.kubelet.filesystem import host_name
from services.kubernetes.kubelet.network import Link
from services.kubernetes.kubelet.sandbox import Sandbox
from services.kubernetes.kubelet.tasks import cancel
from services.kubernetes.kubelet.volumes import Volumes
from services.kubernetes.namespaces import GATEWAY


class Pod:
    """One pod; a `PodContext` for its containers."""

    def __init__(
        self, manifest: Manifest, api: Api, view: ClusterCache, link: Link, directory: Path
    ) -> None:
        metadata, spec = manifest["metadata"], manifest["spec"]
        self.manifest = manifest
        self.uid: str = metadata["uid"]
        self.sandbox = Sandbox(host_name(manifest), link)
        self.address = link.address
        self._logs = directory / "logs" / metadata["namespace"] / metadata["name"]
        self._logs.mkdir(parents=True, exist_ok=True)
        self._changed_event = asyncio.Event()
        self._report_lock = asyncio.Lock()
        self._api = api
        self._directory = directory / "pods" / self.uid
        self._path = PODS.path(metadata["namespace"], metadata["name"])
        self._volumes = Volumes(self._directory / "volumes", api, view)
        self._container_specs = ContainerSpecs(view, self._volumes, self._directory / "roots")
        self._policy = spec.get("restartPolicy", "Always")
        initial_policy = "Never" if self._policy == "Never" else "OnFailure"
        self._initial = [
            self._container(each, initial_policy) for each in spec.get("initContainers", ())
        ]
        self.containers = [self._container(each, self._policy) for each in spec["containers"]]
        self.log = self._logs / "kubelet.log"
        """Unexpected errors of the kubelet."""
        self._all_containers = [*self._initial, *self.containers]
        self._started = status.now()
        self._conditions = status.Conditions()
        self._is_open = False
        self._reported: Mapping[str, Any] = {}
        self._stopping = asyncio.Event()
        self._is_forgotten = False

    async def run(self) -> None:
        """Run until the pod is deleted, then clean up."""
        reporting = asyncio.create_task(self._report_changes())
        running = asyncio.create_task(self._run_containers())
        ending = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([running, ending, reporting], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await self._stop(running)
        finally:
            await cancel(running, ending)
            async with self._report_lock:  # A pending report must not follow the last one.
                await cancel(reporting)
            await self.sandbox.close()
        if not self._is_forgotten:
            await self._report()
        await self._stopping.wait()  # A completed pod stays until it is deleted.
        if not self._is_forgotten:
            await self._api.delete(self._path, uid=self.uid)
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    def update(self, manifest: Manifest) -> None:
        """Apply a changed manifest; the pod may have been deleted."""
        self.manifest = manifest
        if "deletionTimestamp" in manifest["metadata"]:
            self._stopping.set()
        self.refresh()

    def refresh(self) -> None:
        """Apply changes of ConfigMaps and Secrets."""
        if self._is_open:
            self._volumes.refresh(self._manifest_with_address())

    def forget(self) -> None:
        """The API server no longer has it: kill it without grace."""
        self._is_forgotten = True
        self._stopping.set()
        self.signal(signal.SIGKILL)

    @property
    def is_ready(self) -> bool:
        """Whether it is ready, before the API server knows."""
        return not self._stopping.is_set() and all(each.is_ready for each in self.containers)

    async def kill(self) -> None:
        """Kill the processes of its containers; they may be restarted."""
        await asyncio.gather(*(container.kill() for container in self._all_containers))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        for container in self._all_containers:
            container.signal_all(number)

    def container_spec(self, spec: Manifest) -> ContainerSpec:
        """How to start one of the containers."""
        return self._container_specs.write(
            self._manifest_with_address(), spec, self.sandbox.process_id
        )

    async def _run_containers(self) -> None:
        while True:
            try:
                await self._volumes.prepare(self._manifest_with_address())
                break
            except ConfigError as error:
                self._wait_for(error)
                await asyncio.sleep(RETRY_S)
        await self.sandbox.open()
        self._is_open = True
        self._changed_event.set()
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
        self._changed_event.set()

    async def _stop(self, running: asyncio.Task[None]) -> None:
        grace_s = self.manifest["metadata"].get("deletionGracePeriodSeconds", GRACE_S)
        if self._is_forgotten:
            grace_s = 0
        await asyncio.gather(*(container.stop(grace_s) for container in self._all_containers))
        if self._is_open:
            await running  # Its containers report their exit codes.

    def _container(self, spec: Manifest, policy: str) -> Container:
        log = self._logs / f"{spec['name']}.log"
        return Container(spec, policy, self, log, changed=self._changed_event.set)

    def _manifest_with_address(self) -> Manifest:
        """The manifest with the address, before the API server has it."""
        address = {"podIP": self.address, "hostIP": GATEWAY}
        return self.manifest | {"status": self.manifest.get("status", {}) | address}

    async def _report_changes(self) -> None:
        while True:
            await self._changed_event.wait()
            self._changed_event.clear()
            async with self._report_lock:
                await self._report()

    async def _report(self) -> None:
        phase = status.phase(self._policy, self._initial, self.containers)
        conditions = status.conditions(phase, self._initial, self.containers)
        reported = {
            "phase": phase,
            "conditions": self._conditions.update(conditions, phase),
            "hostIP": GATEWAY,
            "hostIPs": [{"ip": GATEWAY}],
            "startTime": self._started,
            "initContainerStatuses": [status.container_status(each) for each in self._initial],
            "containerStatuses": [status.container_status(each) for each in self.containers],
        }
        if self._is_open:
            reported |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        if reported != self._reported:
            patch = {"metadata": {"uid": self.uid}, "status": reported}
            await self._api.patch(f"{self._path}/status", patch, STRATEGIC)
            self._reported = reported
