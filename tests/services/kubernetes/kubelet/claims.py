"""Volumes that outlive pods: a directory for each claim, gone when the claim is.

The controllers of Kubernetes do the binding; here, a volume is made that waits for its claim, and
removed when it has been released.
"""

import asyncio
import shutil
from pathlib import Path

from kafscale.operator.kube.kinds import Kind
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.view import VOLUMES

CLASSES = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", is_namespaced=False)
PROVISIONER = "directories.test"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


async def register(api: Api) -> None:
    """Have a class of volumes, which claims are of that do not say otherwise."""
    metadata = {"name": "standard", "annotations": {_IS_DEFAULT: "true"}}
    kind = {"apiVersion": CLASSES.api_version, "kind": CLASSES.kind}
    await api.create(CLASSES.path(), kind | {"metadata": metadata, "provisioner": PROVISIONER})


def volume(claim: Manifest, directory: Path) -> Manifest:
    """The volume of a claim, for this very claim alone."""
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
    made = volume(claim, directory)
    place = Path(made["spec"]["hostPath"]["path"])
    await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
    await api.create(VOLUMES.path(), made)


async def remove(api: Api, volume: Manifest) -> None:
    path = volume["spec"]["hostPath"]["path"]
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
    metadata = volume["metadata"]
    await api.delete(VOLUMES.path(name=metadata["name"]), uid=metadata["uid"])


def is_wanting(claim: Manifest) -> bool:
    """Whether a claim waits for its volume."""
    is_pending = claim.get("status", {}).get("phase") == "Pending"
    return is_pending and not claim["spec"].get("volumeName")


def is_released(volume: Manifest) -> bool:
    """Whether one of our volumes has lost its claim."""
    is_ours = volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY) == PROVISIONER
    is_going = "deletionTimestamp" in volume["metadata"]
    return is_ours and not is_going and volume.get("status", {}).get("phase") == "Released"
