"""Pods of a managed etcd as processes of this machine, behind an API server in memory.

    with EtcdPods(kube, cluster, tmp_path) as pods:
        keeper = EtcdKeeper(kube, PLATFORM, connect=pods.connect, ...)
        pods.step()

Each `step` does the work of the StatefulSet controller and the kubelets: it creates pods and volume
claims, runs the command of a pod's container with its environment and certificates, restarts it
when it exits, and writes the pod status. Host names of Kubernetes are translated to local
addresses, and back.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from kafscale.config.sections.etcd import Etcd
from kafscale.metadata.store.etcd.maintenance import EtcdMember, Maintenance
from kafscale.operator.kube.api import CONFIG_MAPS, PODS, SECRETS, STATEFUL_SETS, VOLUME_CLAIMS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from services.etcd_server import PROGRAMS
from services.memory_kube import MemoryKube
from services.process import free_port

_FAST_ELECTION = ["--heartbeat-interval=50", "--election-timeout=500", "--unsafe-no-fsync"]


class AddressMap:
    """The addresses of members in Kubernetes, and on this machine."""

    def __init__(self, cluster: Cluster, platform: Platform) -> None:
        self._pairs = []
        self.metrics_ports = {}
        for index in range(etcd_stateful_set.COUNT_MAX):
            host = etcd_stateful_set.host(cluster, platform, index)
            self.metrics_ports[etcd_stateful_set.name(cluster, index)] = free_port()
            for port in (names.ETCD_CLIENT_PORT, names.ETCD_PEER_PORT):
                self._pairs.append((f"{host}:{port}", f"127.0.0.1:{free_port()}"))

    def to_local(self, text: str) -> str:
        for in_cluster, local in self._pairs:
            text = text.replace(in_cluster, local)
        return text

    def to_cluster(self, text: str) -> str:
        for in_cluster, local in self._pairs:
            text = text.replace(local, in_cluster)
        return text


class LocalMaintenance(Maintenance):
    """A member of etcd, with the addresses that it has in Kubernetes."""

    def __init__(self, addresses: AddressMap, endpoint: str, settings: Etcd) -> None:
        super().__init__(addresses.to_local(endpoint), settings)
        self._addresses = addresses

    async def members(self) -> list[EtcdMember]:
        return [self._with_cluster_urls(each) for each in await super().members()]

    async def add_member(self, peer_urls: Sequence[str], *, learner: bool = False) -> EtcdMember:
        local_urls = [self._addresses.to_local(url) for url in peer_urls]
        return self._with_cluster_urls(await super().add_member(local_urls, learner=learner))

    def _with_cluster_urls(self, member: EtcdMember) -> EtcdMember:
        peers = tuple(map(self._addresses.to_cluster, member.peer_urls))
        clients = tuple(map(self._addresses.to_cluster, member.client_urls))
        return EtcdMember(member.id, member.name, peers, clients, member.is_learner)


class _Pod:
    """A pod and its process."""

    def __init__(self, manifest: dict[str, Any], volume: Path, directory: Path) -> None:
        self.manifest = manifest
        self.volume = volume
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self.restart_count = -1

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


class EtcdPods:
    """The pods of one managed etcd."""

    def __init__(
        self, kube: MemoryKube, cluster: Cluster, platform: Platform, directory: Path
    ) -> None:
        self.kube = kube
        self.broken: set[str] = set()
        """Pods that do not start."""
        self._cluster = cluster
        self._directory = directory
        self._addresses = AddressMap(cluster, platform)
        self._pods: dict[str, _Pod] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self._pods.values():
            pod.stop()

    def connect(self, endpoint: str, settings: Etcd) -> LocalMaintenance:
        return LocalMaintenance(self._addresses, endpoint, settings)

    def settings(self, settings: Etcd) -> Etcd:
        """Settings with local endpoints."""
        endpoints = tuple(map(self._addresses.to_local, settings.endpoints))
        return Etcd(endpoints=endpoints, request_timeout_ms=4000, tls=settings.tls)

    def kill(self, name: str) -> None:
        """Kill the process of a pod."""
        self._pods[name].stop()

    def lose(self, name: str) -> None:
        """Kill a member and delete its data."""
        self._pods[name].stop()
        shutil.rmtree(self._pods[name].volume / "data")

    async def step(self) -> None:
        """Reconcile once, as controllers and kubelets do."""
        stateful_set = await self.kube.get(
            STATEFUL_SETS, self._cluster.namespace, names.etcd(self._cluster)
        )
        if stateful_set is None:
            return
        desired = [
            etcd_stateful_set.name(self._cluster, index)
            for index in range(stateful_set["spec"]["replicas"])
        ]
        for name in [name for name in self._pods if name not in desired]:
            await self.kube.delete(PODS, self._cluster.namespace, name)
        await self._stop_deleted()
        for name in desired:
            if name not in self._pods:
                await self._create(name, stateful_set)
            await self._run(self._pods[name])

    async def _stop_deleted(self) -> None:
        for name, pod in list(self._pods.items()):
            now = await self.kube.get(PODS, self._cluster.namespace, name)
            if now is None or now["metadata"]["uid"] != pod.manifest["metadata"]["uid"]:
                pod.stop()
                del self._pods[name]
        claims = await self.kube.list(VOLUME_CLAIMS, self._cluster.namespace)
        claim_ids = {each["metadata"]["uid"] for each in claims}
        for volume in (self._directory / "volumes").glob("*"):
            if volume.name not in claim_ids and volume not in {
                p.volume for p in self._pods.values()
            }:
                shutil.rmtree(volume)

    async def _create(self, name: str, stateful_set: dict[str, Any]) -> None:
        space = self._cluster.namespace
        template = stateful_set["spec"]["template"]
        [claim] = stateful_set["spec"]["volumeClaimTemplates"]
        claim_name = f"{claim['metadata']['name']}-{name}"
        metadata = {**claim["metadata"], "name": claim_name, "namespace": space}
        await self.kube.create({**claim, "metadata": metadata})
        volume_claim = await self.kube.get(VOLUME_CLAIMS, space, claim_name)
        assert volume_claim is not None
        pod = await self.kube.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template["metadata"], "name": name, "namespace": space},
                "spec": template["spec"],
            }
        )
        assert pod is not None
        volume = self._directory / "volumes" / volume_claim["metadata"]["uid"]
        volume.mkdir(parents=True, mode=0o700, exist_ok=True)
        directory = self._directory / pod["metadata"]["uid"]
        directory.mkdir()
        self._pods[name] = _Pod(pod, volume, directory)

    async def _run(self, pod: _Pod) -> None:
        name = pod.manifest["metadata"]["name"]
        is_running = pod.process is not None and pod.process.poll() is None
        if not is_running and name not in self.broken:
            pod.process = await self._start(pod)
            pod.restart_count += 1
        await self._report(pod, is_ready=is_running and await self._is_ready(name))

    async def _start(self, pod: _Pod) -> "subprocess.Popen[bytes]":
        [container] = pod.manifest["spec"]["containers"]
        name = pod.manifest["metadata"]["name"]
        await self._mount_certificates(pod)
        command = [self._local(each, pod) for each in container["command"][1:]]
        environment = {}
        for each in container["env"]:
            environment[each["name"]] = self._local(await self._value(each, name), pod)
        with (self._directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(  # noqa: ASYNC220, S603 - our own command, and it returns soon.
                [PROGRAMS / "etcd", *command, *_FAST_ELECTION],
                stdout=log,
                stderr=log,
                env={**environment, "PATH": os.environ["PATH"]},
            )

    async def _value(self, variable: dict[str, Any], name: str) -> str:
        match variable:
            case {"value": str(value)}:
                return value
            case {"valueFrom": {"fieldRef": _}}:
                return name
            case {"valueFrom": {"configMapKeyRef": {"name": map_name, "key": key}}}:
                config_map = await self.kube.get(CONFIG_MAPS, self._cluster.namespace, map_name)
                return str(config_map["data"][key]) if config_map else ""
        raise AssertionError(variable)

    async def _mount_certificates(self, pod: _Pod) -> None:
        [volume] = pod.manifest["spec"]["volumes"]
        name = volume["secret"]["secretName"]
        secret = await self.kube.get(SECRETS, self._cluster.namespace, name)
        assert secret is not None
        for entry, content in secret["data"].items():
            (pod.directory / entry).write_bytes(base64.b64decode(content))

    def _local(self, text: str, pod: _Pod) -> str:
        name = pod.manifest["metadata"]["name"]
        [container] = pod.manifest["spec"]["containers"]
        data, tls = (each["mountPath"] for each in container["volumeMounts"])
        text = text.replace("$(POD_NAME)", name).replace(data, str(pod.volume))
        text = text.replace(tls, str(pod.directory))
        text = text.replace(
            f"0.0.0.0:{etcd_stateful_set.METRICS_PORT}",
            f"127.0.0.1:{self._addresses.metrics_ports[name]}",
        )
        host = f"{name}.{names.etcd_headless(self._cluster)}.{self._cluster.namespace}.svc"
        # The command has both its advertised and its listening address.
        if "listen" in text:
            text = text.replace("0.0.0.0", f"{host}.cluster.local")  # noqa: S104 - replaced.
        return self._addresses.to_local(text)

    async def _is_ready(self, name: str) -> bool:
        [container] = self._pods[name].manifest["spec"]["containers"]
        path = container["readinessProbe"]["httpGet"]["path"]
        url = f"http://127.0.0.1:{self._addresses.metrics_ports[name]}{path}"

        def probe() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as response:
                return bool(response.status == 200)
            return False

        return await asyncio.to_thread(probe)

    async def _report(self, pod: _Pod, *, is_ready: bool) -> None:
        metadata = pod.manifest["metadata"]
        status = {
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": [
                {"name": etcd_stateful_set.CONTAINER, "restartCount": max(0, pod.restart_count)}
            ],
        }
        await self.kube.merge_patch(
            PODS, metadata["namespace"], metadata["name"], {"status": status}, subresource="status"
        )
