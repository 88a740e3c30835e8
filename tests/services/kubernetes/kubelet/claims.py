"""Persistent volumes: a directory per claim, deleted with the claim.

The controllers of Kubernetes bind them; here, a volume is created for each pending claim, and
removed when it is released.
"""

import asyncio
import shutil
from pathlib import Path

from kafscale.operator.kube.api import Kind
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.cluster_cache import VOLUMES

CLASSES = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", is_namespaced=False)
PROVISIONER = "directories.test"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


async def register(api: Api) -> None:
    """Create the default storage class."""
    metadata = {"name": "standard", "annotations": {_IS_DEFAULT: "true"}}
    kind = {"apiVersion": CLASSES.api_version, "kind": CLASSES.kind}
    await api.create(CLASSES.path(), kind | {"metadata": metadata, "provisioner": PROVISIONER})


def volume(claim: Manifest, directory: Path) -> Manifest:
    """The volume of a claim, bound to it alone."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | reference,
            "hostPath": {"path": str(directory / name)},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.get("storageClassName", ""),
        },
    }


async def provide(api: Api, claim: Manifest, directory: Path) -> None:
    manifest = volume(claim, directory)
    volume_directory = Path(manifest["spec"]["hostPath"]["path"])
    await asyncio.to_thread(volume_directory.mkdir, parents=True, exist_ok=True)
    await api.create(VOLUMES.path(), manifest)


async def remove(api: Api, volume: Manifest) -> None:
    path = volume["spec"]["hostPath"]["path"]
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
    metadata = volume["metadata"]
    await api.delete(VOLUMES.path(name=metadata["name"]), uid=metadata["uid"])


def is_unbound(claim: Manifest) -> bool:
    """Whether a claim waits for its volume."""
    is_pending = claim.get("status", {}).get("phase") == "Pending"
    return is_pending and not claim["spec"].get("volumeName")


def is_released(volume: Manifest) -> bool:
    """Whether one of our volumes has lost its claim."""
    is_ours = volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY) == PROVISIONER
    is_going = "deletionTimestamp" in volume["metadata"]
    return is_ours and not is_going and volume.get("status", {}).get("phase") == "Released"
