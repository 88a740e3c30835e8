"""How the operator connects to a cluster's etcd: settings built from Secrets.

Invariants: certificates are files in a directory of this process, one per cluster. File names
contain a hash of the content, so equal Secrets give equal settings, and changed certificates change
the settings.
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
from kafscale.operator import secrets
from kafscale.operator.kube.api import SECRETS, Kube
from kafscale.operator.manifests.names import EtcdAccess

CA_CERTIFICATE: Final = "ca.crt"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
USERNAME: Final = "KAFSCALE_ETCD_USERNAME"
PASSWORD: Final = "KAFSCALE_ETCD_PASSWORD"  # noqa: S105 - the name of an entry.


async def etcd_settings(kube: Kube, namespace: str, access: EtcdAccess, directory: Path) -> Etcd:
    """The settings of an etcd; raises `OperatingError` if a Secret is missing.

    `directory` belongs to the cluster: what is in it is replaced.
    """
    tls, credentials = EtcdTls(enabled=access.uses_tls), {}
    if access.tls_secret:
        files = await _entries(kube, namespace, access.tls_secret)
        tls = await asyncio.to_thread(_write_certificates, directory, files)
    if access.credentials_secret:
        credentials = await _entries(kube, namespace, access.credentials_secret)
    return Etcd(
        endpoints=access.endpoints,
        username=credentials.get(USERNAME, "").strip(),
        password=credentials.get(PASSWORD, "").strip(),
        tls=tls,
    )


async def _entries(kube: Kube, namespace: str, name: str) -> dict[str, str]:
    secret = await kube.get(SECRETS, namespace, name)
    if secret is None:
        raise OperatingError(f"the Secret {name!r} for etcd is missing in namespace {namespace!r}")
    return secrets.data(secret)


def _write_certificates(parent: Path, entries: Mapping[str, str]) -> EtcdTls:
    """Write the files of a Secret, and remove its former ones."""
    files = {
        name: entries[name] for name in (CA_CERTIFICATE, CERTIFICATE, KEY) if entries.get(name)
    }
    digest = hashlib.sha256(msgspec.json.encode(files, order="sorted")).hexdigest()[:16]
    directory = parent / digest
    if not directory.is_dir():
        shutil.rmtree(parent, ignore_errors=True)
        _write_all(directory, files)
    paths = {name: str(directory / name) for name in files}
    return EtcdTls(
        enabled=True,
        ca_file=paths.get(CA_CERTIFICATE, ""),
        cert_file=paths.get(CERTIFICATE, ""),
        key_file=paths.get(KEY, ""),
    )


def _write_all(directory: Path, files: Mapping[str, str]) -> None:
    """Create a directory of files atomically."""
    temporary = directory.with_suffix(".draft")
    temporary.mkdir(parents=True, mode=0o700)
    for name, content in files.items():
        path = temporary / name
        path.touch(mode=0o600)
        path.write_text(content)
    temporary.rename(directory)
