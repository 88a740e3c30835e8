"""Tests of reading Secrets, and of their checksums."""
# ruff: noqa: S106 - nothing here opens anything.

import asyncio
import base64

from kafscale.operator import secrets
from kafscale.operator.kube.api import Manifest
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


def test_keys_are_read_by_kafscale_and_aws_names() -> None:
    ours = secret(KAFSCALE_S3_ACCESS_KEY="a", KAFSCALE_S3_SECRET_KEY="b\n")
    theirs = secret(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_SESSION_TOKEN="c")
    assert secrets.keys(ours) == secrets.Keys("a", "b", "")
    assert secrets.keys(theirs) == secrets.Keys("a", "b", "c")
    assert secrets.keys(secret(other="x")) is None


def test_keys_are_not_in_the_repr() -> None:
    assert "hidden" not in repr(secrets.Keys("hidden", "hidden", "hidden"))


def test_checksum_changes_with_the_content_and_reveals_nothing() -> None:
    first, changed = checksum(secret(password="hunter2")), checksum(secret(password="hunter3"))
    assert first == checksum(secret(password="hunter2"))
    assert first != changed
    assert first != checksum(names=("keys",))
    assert "hunter" not in first


def test_secrets_are_only_read() -> None:
    async def scenario() -> int:
        kube = MemoryKube(lambda: 0)
        await kube.create(secret(password="x"))
        before = len(kube.writes)
        await secrets.checksum(kube, "default", ["keys", "missing"])
        return len(kube.writes) - before

    assert asyncio.run(scenario()) == 0
