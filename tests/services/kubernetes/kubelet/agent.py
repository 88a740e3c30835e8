"""The agent of all nodes: schedules pods, runs them, and serves volumes, names and Services.

Each change that a watch cache reports sets an event, which wakes one task.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from kafscale.operator.kube.api import SERVICES
from services.kubernetes.kubelet import claims, nodes, scheduler
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.cluster_cache import ClusterCache
from services.kubernetes.kubelet.dns_zone import zone
from services.kubernetes.kubelet.name_server import NameServer
from services.kubernetes.kubelet.network import Network
from services.kubernetes.kubelet.pod import Pod
from services.kubernetes.kubelet.service_proxy import ServiceProxy, routes
from services.kubernetes.namespaces import GATEWAY


class Agent:
    """All nodes of a cluster."""

    def __init__(self, api: Api, directory: Path, zones: Mapping[str, str]) -> None:
        self.view = ClusterCache(api)
        self.pods: dict[str, Pod] = {}
        """Pods on a node, by uid."""
        self._api = api
        self._directory = directory
        self._zones = zones
        self._network = Network()
        self._name_server = NameServer()
        self._proxy = ServiceProxy()
        self._assigned_nodes: dict[str, str] = {}
        """The node of each scheduled pod by uid; empty if none is feasible."""
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Run until cancelled."""
        await self._network.open()
        await self._name_server.open(GATEWAY)
        await claims.register(self._api)
        for name, place in self._zones.items():
            await nodes.register(self._api, name, place)
        try:
            async with asyncio.TaskGroup() as group:
                for cache in self.view.caches:
                    group.create_task(cache.run())
                for name in self._zones:
                    group.create_task(nodes.keep_alive(self._api, name))
                await self.view.synced()
                view = self.view
                view.pods.listen(self._on_pod)
                view.config_maps.listen(self._on_source)
                view.secrets.listen(self._on_source)
                for work, caches in (
                    (self._schedule_pods, (view.pods, view.nodes)),
                    (self._serve_claims, (view.claims, view.volumes)),
                    (self._set_load_balancer_status, (view.services,)),
                    (self._update_services, (view.services, view.endpoint_slices)),
                ):
                    event = asyncio.Event()
                    for cache in caches:
                        cache.listen(lambda *_, event=event: event.set())
                    group.create_task(_run_on_change(event, work))
                ready()
        finally:
            await self._close()

    def find(self, namespace: str, name: str) -> Pod | None:
        """The pod with this name on a node now; the newest, if a former one is terminating."""
        for pod in reversed(list(self.pods.values())):
            metadata = pod.manifest["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return pod
        return None

    def _on_pod(self, manifest: Manifest, is_deleted: bool) -> None:
        uid = manifest["metadata"]["uid"]
        pod = self.pods.get(uid)
        if pod is not None:
            if is_deleted:
                pod.forget()
            else:
                pod.update(manifest)
        elif not is_deleted and self._is_new(manifest):
            pod = Pod(manifest, self._api, self.view, self._network.link(), self._directory)
            self.pods[uid] = pod
            self._tasks[uid] = asyncio.create_task(self._run_pod(pod))
            pod.update(manifest)

    def _is_new(self, manifest: Manifest) -> bool:
        """Whether a pod is on one of our nodes and has not run yet."""
        is_here = manifest["spec"].get("nodeName") in self._zones
        is_over = manifest.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        return is_here and not is_over and manifest["metadata"]["uid"] not in self._tasks

    def _on_source(self, manifest: Manifest, _is_gone: bool) -> None:
        for pod in self.pods.values():
            if pod.manifest["metadata"]["namespace"] == manifest["metadata"]["namespace"]:
                pod.refresh()

    async def _run_pod(self, pod: Pod) -> None:
        try:
            await pod.run()
        except Exception:
            pod.log.write_text(traceback.format_exc())
            raise
        finally:
            del self.pods[pod.uid]

    async def _schedule_pods(self) -> None:
        for pod in self.view.pods:
            uid, spec = pod["metadata"]["uid"], pod["spec"]
            if spec.get("nodeName") or self._assigned_nodes.get(uid):
                continue
            scheduled = [_with_node(each, self._assigned_nodes) for each in self.view.pods]
            node_name = scheduler.choose(pod, list(self.view.nodes), scheduled)
            if node_name is not None:
                self._assigned_nodes[uid] = node_name
                await scheduler.bind(self._api, pod, node_name)
            elif uid not in self._assigned_nodes:
                self._assigned_nodes[uid] = ""
                await scheduler.mark_unschedulable(self._api, pod)

    async def _serve_claims(self) -> None:
        for claim in self.view.claims:
            if claims.is_unbound(claim):
                await claims.provide(self._api, claim, self._directory / "claims")
        for volume in self.view.volumes:
            if claims.is_released(volume):
                await claims.remove(self._api, volume)

    async def _set_load_balancer_status(self) -> None:
        """Give pending LoadBalancer Services an external address: their cluster IP."""
        for service in self.view.services:
            metadata, spec = service["metadata"], service["spec"]
            has_one = service.get("status", {}).get("loadBalancer", {}).get("ingress")
            if spec.get("type") == "LoadBalancer" and not has_one:
                status = {"loadBalancer": {"ingress": [{"ip": spec["clusterIP"]}]}}
                path = SERVICES.path(metadata["namespace"], metadata["name"], "status")
                await self._api.patch(path, {"status": status})

    async def _update_services(self) -> None:
        services, slices = list(self.view.services), list(self.view.endpoint_slices)
        self._name_server.zone = zone(services, slices)
        await self._proxy.update(routes(services, slices))

    async def _close(self) -> None:
        for pod in self.pods.values():
            pod.forget()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        await self._proxy.close()
        self._name_server.close()
        for task in self._tasks.values():
            task.result()


async def _run_on_change(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await event.wait()
        event.clear()
        await work()


def _with_node(pod: Manifest, assigned_nodes: Mapping[str, str]) -> Manifest:
    """A pod with its assigned node, before the API server reports it."""
    node = pod["spec"].get("nodeName") or assigned_nodes.get(pod["metadata"]["uid"])
    return pod | {"spec": pod["spec"] | {"nodeName": node}}
