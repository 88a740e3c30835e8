"""Contents of Secrets: for the operator's own use, and as checksums that restart brokers.

Invariant: contents go to S3 or etcd only, never into a log, event, status or annotation. Pods are
annotated with a checksum that is salted with the uid of the Secret.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from kafscale.operator.kube.api import SECRETS, Kube, Manifest

_ACCESS_KEYS = ("KAFSCALE_S3_ACCESS_KEY", "AWS_ACCESS_KEY_ID")
_SECRET_KEYS = ("KAFSCALE_S3_SECRET_KEY", "AWS_SECRET_ACCESS_KEY")
_SESSION_TOKENS = ("KAFSCALE_S3_SESSION_TOKEN", "AWS_SESSION_TOKEN")


class Keys(msgspec.Struct, frozen=True):
    """The credentials of S3; all empty if a role is used."""

    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""

    def __repr__(self) -> str:
        return "Keys(...)"


def data(secret: Manifest) -> dict[str, str]:
    """The entries of a Secret, as text."""
    entries: Mapping[str, str] = secret.get("data") or {}
    return {name: base64.b64decode(value).decode() for name, value in entries.items()}


def keys(secret: Manifest) -> Keys | None:
    """The S3 credentials in a Secret; None if there are none."""
    entries = data(secret)

    def first(names: Iterable[str]) -> str:
        return next((entries[name].strip() for name in names if entries.get(name)), "")

    access_key, secret_key = first(_ACCESS_KEYS), first(_SECRET_KEYS)
    return Keys(access_key, secret_key, first(_SESSION_TOKENS)) if access_key else None


async def checksum(kube: Kube, namespace: str, secret_names: Iterable[str]) -> str:
    """Changes when the content of these Secrets does, and reveals nothing about it."""
    digest = hashlib.sha256()
    for name in secret_names:
        secret = await kube.get(SECRETS, namespace, name)
        if secret is None:
            digest.update(f"{name} is missing\n".encode())
            continue
        entries = msgspec.json.encode(secret.get("data") or {}, order="sorted")
        digest.update(f"{name} {secret['metadata']['uid']} ".encode() + entries + b"\n")
    return digest.hexdigest()[:32]
