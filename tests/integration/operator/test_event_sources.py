"""Tests of kopf on an API server that knows the custom resources only."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kafscale.operator.event_sources import FINALIZER, listen
from kafscale.operator.kube.api import CLUSTERS, TOPICS
from kafscale.operator.work_queue import ResourceKey, WorkQueue
from services.rbac import Permission, granted

pytestmark = pytest.mark.timeout(60)

GROUP, VERSION = CLUSTERS.api_version.split("/")
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


class ApiServerDouble:
    """Discovery, and one cluster per namespace; records all other requests."""

    def __init__(self, *namespaces: str) -> None:
        self.permissions: set[Permission] = set()
        self.namespaces: set[str] = set()
        """Those that were named in requests."""
        self.finalized: set[str] = set()
        """Those whose cluster has the operator's finalizer."""
        self.clusters = {each: _cluster(each) for each in namespaces}

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/api", _json({"versions": ["v1"]}))
        application.router.add_get("/api/v1", _json(_resources("v1", "namespaces", "events")))
        version = {"groupVersion": CLUSTERS.api_version, "version": VERSION}
        group = {"name": GROUP, "versions": [version], "preferredVersion": version}
        application.router.add_get("/apis", _json({"groups": [group]}))
        kinds = _resources(CLUSTERS.api_version, CLUSTERS.plural, TOPICS.plural)
        application.router.add_get(f"/apis/{CLUSTERS.api_version}", _json(kinds))
        application.router.add_route("*", "/{path:.*}", self._respond)
        return application

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/apis/").removeprefix("/api/").split("/")
        group = path[0] if request.path.startswith("/apis/") else ""
        namespace = path[3] if len(path) > 3 and path[2] == "namespaces" else ""
        plural = path[4] if namespace else path[-1]
        verb = "patch" if request.method == "PATCH" else "list"
        if "watch" in request.query:
            verb = "watch"
        self.permissions.add(Permission(group, plural, verb))
        self.namespaces.add(namespace)
        clusters = [each for space, each in self.clusters.items() if namespace in {"", space}]
        if verb == "watch":
            stream = web.StreamResponse()
            await stream.prepare(request)
            await asyncio.sleep(60)
            return stream
        if verb == "patch":
            [cluster] = clusters
            assert {"/metadata/finalizers"} == {
                each["path"] for each in await request.json() if each["op"] == "add"
            }
            cluster["metadata"] |= {"finalizers": [FINALIZER], "resourceVersion": "2"}
            self.finalized.add(namespace)
            return web.json_response(cluster)
        items = clusters if plural == CLUSTERS.plural else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


def _cluster(namespace: str) -> dict[str, Any]:
    metadata = {"name": "demo", "namespace": namespace, "uid": namespace, "resourceVersion": "1"}
    body = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind}
    return body | {"metadata": metadata, "spec": {}}


def _resources(version: str, *plurals: str) -> dict[str, Any]:
    resources = [
        {"name": each, "singularName": "", "kind": each, "namespaced": True, "verbs": VERBS}
        for each in plurals
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def _json(body: dict[str, Any]) -> Any:
    async def respond(_: web.Request) -> web.Response:
        return web.json_response(body)

    return respond


class RecordingWorker:
    """Records what is reconciled."""

    def __init__(self) -> None:
        self.reconciled: set[str] = set()

    async def reconcile(self, key: ResourceKey) -> float:
        self.reconciled.add(key.namespace)
        return 60.0

    async def finalize(self, _key: ResourceKey, _body: dict[str, Any]) -> bool:
        return True


@contextmanager
def _kubeconfig(port: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    cluster = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    users = [{"name": "a", "user": {"token": "t"}}]
    config = {"contexts": [context], "clusters": [cluster], "users": users, "current-context": "a"}
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    yield


@pytest.mark.parametrize("namespaces", [("bank", "shop"), ()])
def test_only_custom_resources_of_watched_namespaces_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespaces: tuple[str, ...]
) -> None:
    server = ApiServerDouble("bank", "other", "shop")

    async def scenario() -> set[str]:
        runner = web.AppRunner(server.application(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        queue, stop = WorkQueue(), asyncio.Event()
        worker: Any = RecordingWorker()
        with _kubeconfig(runner.addresses[0][1], tmp_path / "kubeconfig", monkeypatch):
            listening = asyncio.create_task(listen(worker, queue, namespaces, stop))
            expected = set(namespaces) or set(server.clusters)
            while worker.reconciled < expected or server.finalized < expected:
                await asyncio.sleep(0.05)
                assert not listening.done(), listening.result()
            stop.set()
            await asyncio.wait([listening], timeout=20)
        await runner.cleanup()
        assert listening.done()
        return worker.reconciled

    reconciled = asyncio.run(scenario())
    assert reconciled == (set(namespaces) or {"bank", "other", "shop"})
    watched = {each for each in server.namespaces if each}
    assert watched >= set(namespaces)
    assert "other" not in watched or not namespaces
    assert server.permissions <= granted("operator_role.yaml")
    assert server.permissions == {
        *(Permission(GROUP, CLUSTERS.plural, each) for each in ("list", "watch", "patch")),
        *(Permission(GROUP, TOPICS.plural, each) for each in ("list", "watch")),
    }
    assert server.finalized == reconciled
