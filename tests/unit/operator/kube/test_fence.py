"""Who does not lead any more writes nothing, whatever it was in the middle of."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from kafscale.errors import KubeError
from kafscale.operator.kube.client import ApiServer
from kafscale.operator.kube.kinds import PODS

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
WRITES: dict[str, Callable[[ApiServer], Coroutine[Any, Any, Any]]] = {
    "apply": lambda server: server.apply(POD),
    "apply_status": lambda server: server.apply_status(POD),
    "create": lambda server: server.create(POD),
    "replace": lambda server: server.replace(POD),
    "merge": lambda server: server.merge(PODS, "b", "a", {}),
    "delete": lambda server: server.delete(PODS, "b", "a"),
}


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_behind_the_fence(write: str) -> None:
    async def scenario() -> None:
        async with ApiClient(Configuration(host="http://127.0.0.1:1")) as client:
            leads = True
            server = ApiServer(client).fenced(lambda: leads)
            with pytest.raises(KubeError, match="did not answer"):
                await WRITES[write](server)
            leads = False
            with pytest.raises(KubeError, match="does not lead any more"):
                await WRITES[write](server)
            with pytest.raises(KubeError, match="did not answer"):
                await server.get(PODS, "b", "a")

    asyncio.run(scenario())
