"""How the operator itself reaches the etcd of a cluster: settings, made from what Secrets hold.

The laws: certificates are files below one private directory, which only this process reads. Equal
Secrets make equal settings and other Secrets make others, for the names of the files are made from
what is in them: whoever compares settings learns of new certificates.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.errors import OperatingError
from kafscale.operator.cluster import secrets
from kafscale.operator.kube.api import Kube
from kafscale.operator.kube.kinds import SECRETS
from kafscale.operator.manifests.names import EtcdAccess

AUTHORITY: Final = "ca.crt"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
USERNAME: Final = "KAFSCALE_ETCD_USERNAME"
PASSWORD: Final = "KAFSCALE_ETCD_PASSWORD"  # noqa: S105 - the name of an entry.


async def etcd_settings(kube: Kube, namespace: str, access: EtcdAccess, directory: Path) -> Etcd:
    """The settings for an etcd; raises `OperatingError` where a Secret is missing."""
    tls, login = EtcdTls(enabled=access.uses_tls), {}
    if access.tls_secret:
        shown = await _entries(kube, namespace, access.tls_secret)
        place = directory / namespace / access.tls_secret
        tls = await asyncio.to_thread(_written, place, shown)
    if access.credentials_secret:
        login = await _entries(kube, namespace, access.credentials_secret)
    return Etcd(
        endpoints=access.endpoints,
        username=login.get(USERNAME, "").strip(),
        password=login.get(PASSWORD, "").strip(),
        tls=tls,
    )


async def _entries(kube: Kube, namespace: str, name: str) -> dict[str, str]:
    secret = await kube.get(SECRETS, namespace, name)
    if secret is None:
        raise OperatingError(f"the Secret {name!r} for etcd is missing in namespace {namespace!r}")
    return secrets.data(secret)


def _written(place: Path, entries: Mapping[str, str]) -> EtcdTls:
    """The files of a Secret; those that it had before are removed."""
    shown = {name: entries[name] for name in (AUTHORITY, CERTIFICATE, KEY) if entries.get(name)}
    digest = hashlib.sha256(msgspec.json.encode(shown, order="sorted")).hexdigest()[:16]
    directory = place / digest
    if not directory.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        _write_all(directory, shown)
    paths = {name: str(directory / name) for name in shown}
    return EtcdTls(
        enabled=True,
        ca_file=paths.get(AUTHORITY, ""),
        cert_file=paths.get(CERTIFICATE, ""),
        key_file=paths.get(KEY, ""),
    )


def _write_all(directory: Path, files: Mapping[str, str]) -> None:
    """Make a directory of files that is there as a whole or not at all."""
    draft = directory.with_suffix(".draft")
    draft.mkdir(parents=True, mode=0o700)
    for name, content in files.items():
        path = draft / name
        path.touch(mode=0o600)
        path.write_text(content)
    draft.rename(directory)
