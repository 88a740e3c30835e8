"""All that goes on around pods: they are given nodes and started, found and reached.

Whatever the API server tells rings a bell, and each bell has somebody who puts things in order.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from kafscale.operator.kube.kinds import SERVICES
from services.kubernetes.kubelet import claims, nodes, scheduler
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.name_server import NameServer
from services.kubernetes.kubelet.network import Network
from services.kubernetes.kubelet.pod import Pod
from services.kubernetes.kubelet.service_proxy import ServiceProxy, routes
from services.kubernetes.kubelet.view import View
from services.kubernetes.kubelet.zone import zone
from services.kubernetes.namespaces import GATEWAY


class Agent:
    """The nodes of a cluster at work."""

    def __init__(self, api: Api, directory: Path, zones: Mapping[str, str]) -> None:
        self.view = View(api)
        self.pods: dict[str, Pod] = {}
        """Those that are on a node, by their uid."""
        self._api = api
        self._directory = directory
        self._zones = zones
        self._network = Network()
        self._name_server = NameServer()
        self._proxy = ServiceProxy()
        self._placed: dict[str, str] = {}
        """The node of each pod that was given one, by its uid; empty for those without any."""
        self._lives: dict[str, asyncio.Task[None]] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Work until cancelled."""
        await self._network.open()
        await self._name_server.open(GATEWAY)
        await claims.register(self._api)
        for name, place in self._zones.items():
            await nodes.register(self._api, name, place)
        try:
            async with asyncio.TaskGroup() as group:
                for mirror in self.view.mirrors:
                    group.create_task(mirror.run())
                for name in self._zones:
                    group.create_task(nodes.keep_alive(self._api, name))
                await self.view.filled()
                view = self.view
                view.pods.listen(self._see_pod)
                view.config_maps.listen(self._see_source)
                view.secrets.listen(self._see_source)
                for work, mirrors in (
                    (self._place_pods, (view.pods, view.nodes)),
                    (self._serve_claims, (view.claims, view.volumes)),
                    (self._balance, (view.services,)),
                    (self._connect, (view.services, view.endpoint_slices)),
                ):
                    bell = asyncio.Event()
                    for mirror in mirrors:
                        mirror.listen(lambda *_, bell=bell: bell.set())
                    group.create_task(_whenever(bell, work))
                ready()
        finally:
            await self._close()

    def find(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name that is on a node now; a former one may be about to go."""
        for pod in reversed(list(self.pods.values())):
            metadata = pod.manifest["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return pod
        return None

    def _see_pod(self, manifest: Manifest, is_gone: bool) -> None:
        uid = manifest["metadata"]["uid"]
        pod = self.pods.get(uid)
        if pod is not None:
            if is_gone:
                pod.forget()
            else:
                pod.update(manifest)
        elif not is_gone and self._is_new(manifest):
            pod = Pod(manifest, self._api, self.view, self._network.link(), self._directory)
            self.pods[uid] = pod
            self._lives[uid] = asyncio.create_task(self._attend(pod))
            pod.update(manifest)

    def _is_new(self, manifest: Manifest) -> bool:
        """Whether a pod is on one of our nodes, and has not lived yet."""
        is_here = manifest["spec"].get("nodeName") in self._zones
        is_over = manifest.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        return is_here and not is_over and manifest["metadata"]["uid"] not in self._lives

    def _see_source(self, manifest: Manifest, _is_gone: bool) -> None:
        for pod in self.pods.values():
            if pod.manifest["metadata"]["namespace"] == manifest["metadata"]["namespace"]:
                pod.refresh()

    async def _attend(self, pod: Pod) -> None:
        try:
            await pod.run()
        except Exception:
            pod.log.write_text(traceback.format_exc())
            raise
        finally:
            del self.pods[pod.uid]

    async def _place_pods(self) -> None:
        for pod in self.view.pods:
            uid, spec = pod["metadata"]["uid"], pod["spec"]
            if spec.get("nodeName") or self._placed.get(uid):
                continue
            settled = [_with_node(each, self._placed) for each in self.view.pods]
            chosen = scheduler.choose(pod, list(self.view.nodes), settled)
            if chosen is not None:
                self._placed[uid] = chosen
                await scheduler.bind(self._api, pod, chosen)
            elif uid not in self._placed:
                self._placed[uid] = ""
                await scheduler.refuse(self._api, pod)

    async def _serve_claims(self) -> None:
        for claim in self.view.claims:
            if claims.is_wanting(claim):
                await claims.provide(self._api, claim, self._directory / "claims")
        for volume in self.view.volumes:
            if claims.is_released(volume):
                await claims.remove(self._api, volume)

    async def _balance(self) -> None:
        """Give those Services an address from outside that wait for one: their own."""
        for service in self.view.services:
            metadata, spec = service["metadata"], service["spec"]
            has_one = service.get("status", {}).get("loadBalancer", {}).get("ingress")
            if spec.get("type") == "LoadBalancer" and not has_one:
                status = {"loadBalancer": {"ingress": [{"ip": spec["clusterIP"]}]}}
                path = SERVICES.path(metadata["namespace"], metadata["name"], "status")
                await self._api.patch(path, {"status": status})

    async def _connect(self) -> None:
        services, slices = list(self.view.services), list(self.view.endpoint_slices)
        self._name_server.zone = zone(services, slices)
        await self._proxy.update(routes(services, slices))

    async def _close(self) -> None:
        for pod in self.pods.values():
            pod.forget()
        if self._lives:
            await asyncio.wait(self._lives.values())
        await self._proxy.close()
        self._name_server.close()
        for life in self._lives.values():
            life.result()


async def _whenever(bell: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await bell.wait()
        bell.clear()
        await work()


def _with_node(pod: Manifest, placed: Mapping[str, str]) -> Manifest:
    """A pod as it will be when the API server has told of where it was placed."""
    node = pod["spec"].get("nodeName") or placed.get(pod["metadata"]["uid"])
    return pod | {"spec": pod["spec"] | {"nodeName": node}}
