"""Tests of the API client: a former leader writes nothing, and names address one object only."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from kafscale.errors import KubeError
from kafscale.operator.kube.api import PODS, SECRETS
from kafscale.operator.kube.client import ApiServer

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
WRITES: dict[str, Callable[[ApiServer], Coroutine[Any, Any, Any]]] = {
    "apply": lambda server: server.apply(POD),
    "apply_status": lambda server: server.apply_status(POD),
    "create": lambda server: server.create(POD),
    "replace": lambda server: server.replace(POD),
    "merge_patch": lambda server: server.merge_patch(PODS, "b", "a", {}),
    "delete": lambda server: server.delete(PODS, "b", "a"),
}


@pytest.mark.parametrize("write", WRITES)
def test_former_leader_cannot_write(write: str) -> None:
    async def scenario() -> None:
        async with ApiClient(Configuration(host="http://127.0.0.1:1")) as client:
            is_leader = True
            server = ApiServer(client).fenced(lambda: is_leader)
            with pytest.raises(KubeError, match="no response"):
                await WRITES[write](server)
            is_leader = False
            with pytest.raises(KubeError, match="no longer the leader"):
                await WRITES[write](server)
            with pytest.raises(KubeError, match="no response"):
                await server.get(PODS, "b", "a")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "name",
    ["../../victim/secrets/tls", "..", ".", "a/b", "a%2fb", "a?x=1", "a#b", "A", "a\n", "x" * 254],
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    async def scenario() -> None:
        async with ApiClient(Configuration(host="http://127.0.0.1:1")) as client:
            server = ApiServer(client)
            for namespace, of_object in (("tenant", name), (name, "tls")):
                with pytest.raises(KubeError, match="not a valid name"):
                    await server.get(SECRETS, namespace, of_object)
            with pytest.raises(KubeError, match="not a valid name"):
                await server.merge_patch(SECRETS, "tenant", name, {})

    asyncio.run(scenario())
