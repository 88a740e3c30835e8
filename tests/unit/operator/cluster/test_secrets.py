"""What is read from Secrets, and what is told about them."""
# ruff: noqa: S106 - nothing here opens anything.

import asyncio
import base64

from kafscale.operator.cluster import secrets
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import SECRETS
from kafscale.operator.manifests.names import WATCHED
from services.memory_kube import MemoryKube


def secret(name: str = "keys", **entries: str) -> Manifest:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in entries.items()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def checksum(*manifests: Manifest, names: tuple[str, ...] = ("keys",)) -> str:
    async def scenario() -> str:
        kube = MemoryKube(lambda: 0)
        for each in manifests:
            await kube.create(each)
        return await secrets.checksum(kube, "default", names)

    return asyncio.run(scenario())


def test_keys_go_by_our_names_or_by_those_of_aws() -> None:
    ours = secret(KAFSCALE_S3_ACCESS_KEY="a", KAFSCALE_S3_SECRET_KEY="b\n")
    theirs = secret(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_SESSION_TOKEN="c")
    assert secrets.keys(ours) == secrets.Keys("a", "b", "")
    assert secrets.keys(theirs) == secrets.Keys("a", "b", "c")
    assert secrets.keys(secret(other="x")) is None


def test_keys_are_never_shown() -> None:
    assert "hidden" not in repr(secrets.Keys("hidden", "hidden", "hidden"))


def test_a_checksum_changes_with_what_is_in_it_and_tells_nothing() -> None:
    one, other = checksum(secret(password="hunter2")), checksum(secret(password="hunter3"))
    assert one == checksum(secret(password="hunter2"))
    assert one != other
    assert one != checksum(names=("keys",))
    assert "hunter" not in one


def test_it_is_labelled_so_that_it_can_be_watched() -> None:
    async def scenario() -> Manifest | None:
        kube = MemoryKube(lambda: 0)
        await kube.create(secret(password="x"))
        await secrets.checksum(kube, "default", ["keys"])
        return await kube.get(SECRETS, "default", "keys")

    found = asyncio.run(scenario())
    assert found is not None
    assert WATCHED in found["metadata"]["labels"]
