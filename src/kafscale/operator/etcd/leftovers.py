"""What is left of the etcd of a former cluster that had the same name. Pure.

The law: it is not touched, and nothing is begun before it is gone, which Kubernetes sees to. Who
took it over would believe what it says: that the cluster has formed, and that nobody may begin; and
its members would answer in the place of those that are still to come. What belongs to nobody, as
after a deletion with `--cascade=orphan`, is no remains: it was left for us.
"""

from collections.abc import Iterator

from kafscale.operator.etcd.observe import Objects
from kafscale.operator.kube.api import Manifest


def remains(objects: Objects, cluster_uid: str) -> list[str]:
    """The objects that belong to somebody else who had our name, as KIND NAME."""
    return [_title(each) for each in _foreign(objects, cluster_uid)]


def _foreign(objects: Objects, cluster_uid: str) -> Iterator[Manifest]:
    own = (objects.stateful_set, objects.admission, *objects.secrets.values())
    yield from (each for each in own if each and _owner(each, cluster_uid) != cluster_uid)
    set_uid = objects.stateful_set["metadata"]["uid"] if objects.stateful_set else ""
    yield from (each for each in objects.pods.values() if _owner(each, set_uid) != set_uid)


def _owner(manifest: Manifest, nobody: str) -> str:
    """The uid of who has made an object; `nobody` for one that belongs to nobody."""
    references = manifest["metadata"].get("ownerReferences") or ()
    uids: list[str] = [each["uid"] for each in references if each.get("controller")]
    return uids[0] if uids else nobody


def _title(manifest: Manifest) -> str:
    # Objects in lists do not say what they are.
    return f"{manifest.get('kind') or 'Pod'} {manifest['metadata']['name']}"
