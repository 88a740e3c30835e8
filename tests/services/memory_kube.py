"""A Kubernetes API server in memory: implements `Kube`, without controllers.

Invariants: callers get copies. Server-side apply removes fields that the same applier applied
before and no longer sets, and keeps all others; a list is one value. Only a change creates a new
resource version, and only a change of the spec a new generation. An object with finalizers stays
until they are removed; objects that it owns are deleted with it, at once.

`objects` has all objects, `events` the recorded events, and `writes` every write that changed
something. While `failure` is set, every call raises it.
"""

import copy
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafscale.errors import KubeError
from kafscale.operator.kube.api import (
    AUTOSCALERS,
    CLUSTERS,
    DISRUPTION_BUDGETS,
    PODS,
    SERVICE_MONITORS,
    SERVICES,
    STATEFUL_SETS,
    TOPICS,
    VOLUME_CLAIMS,
    Kind,
    Manifest,
    kind_of,
)

START_MS = 1_750_000_000_000
WITH_STATUS = {
    AUTOSCALERS,
    CLUSTERS,
    DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    TOPICS,
    VOLUME_CLAIMS,
}
UNKNOWN = {SERVICE_MONITORS}


class ObjectKey(NamedTuple):
    kind: Kind
    namespace: str
    name: str


class RecordedEvent(NamedTuple):
    """A recorded event."""

    name: str
    reason: str
    message: str
    warning: bool


class Write(NamedTuple):
    """A write that changed something."""

    verb: str
    kind: str
    name: str


class MemoryKube:
    """A `Kube` on a dictionary."""

    def __init__(self, clock: Callable[[], int] = lambda: START_MS) -> None:
        """`clock` returns milliseconds, for creation and deletion timestamps."""
        self.objects: dict[ObjectKey, Manifest] = {}
        self.events: list[RecordedEvent] = []
        self.writes: list[Write] = []
        self.failure: KubeError | None = None
        self.unknown = UNKNOWN
        """The kinds without a CRD on this server."""
        self._clock = clock
        self._applied: dict[tuple[ObjectKey, str], Manifest] = {}
        self._version = 0
        self._created_count = 0

    # --- reads -----------------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self._check_kind(kind)
        return copy.deepcopy(self.objects.get(ObjectKey(kind, namespace, name)))

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        self._check_kind(kind)
        selector = (labels or {}).items()
        return [
            copy.deepcopy(manifest)
            for key, manifest in sorted(self.objects.items(), key=lambda item: item[0][1:])
            if key.kind == kind
            and namespace in {"", key.namespace}
            and selector <= (manifest["metadata"].get("labels") or {}).items()
        ]

    async def supports(self, kind: Kind) -> bool:
        self._check_failure()
        return kind not in self.unknown

    # --- writes ----------------------------------------------------------------------------------

    async def apply(self, manifest: Manifest) -> Manifest:
        key = self._key(manifest)
        self._check_uid(key, manifest["metadata"].get("uid"))
        desired = {part: manifest[part] for part in manifest if not _is_subresource(key.kind, part)}
        if key not in self.objects:
            self._applied[key, ""] = copy.deepcopy(desired)
            return self._create("apply", key, desired)
        return self._write("apply", key, self._merged(key, "", desired))

    async def apply_status(self, manifest: Manifest) -> None:
        key = self._key(manifest)
        if key in self.objects:
            desired = {"status": manifest["status"]}
            self._write("status", key, self._merged(key, "status", desired))

    async def create(self, manifest: Manifest) -> Manifest | None:
        key = self._key(manifest)
        if key in self.objects:
            return None
        return self._create(
            "create",
            key,
            {part: manifest[part] for part in manifest if not _is_subresource(key.kind, part)},
        )

    async def replace(self, manifest: Manifest) -> Manifest | None:
        """Replace an object; None if it has changed since it was read."""
        key = self._key(manifest)
        now = self.objects.get(key)
        read = manifest["metadata"].get("resourceVersion")
        if now is None or read not in {None, now["metadata"]["resourceVersion"]}:
            return None
        return self._write("replace", key, copy.deepcopy(manifest))

    async def merge_patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        self._check_kind(kind)
        key = ObjectKey(kind, namespace, name)
        if key not in self.objects:
            return None
        if subresource:
            part = {"status": {"status"}, "scale": {"spec"}}[subresource]
            patch = {field: patch[field] for field in patch if field in part}
        else:
            patch = {field: patch[field] for field in patch if not _is_subresource(kind, field)}
        return self._write(
            subresource or "merge", key, _merge(copy.deepcopy(self.objects[key]), patch)
        )

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        self._check_kind(kind)
        key = ObjectKey(kind, namespace, name)
        current = self.objects.get(key)
        if current is None or (uid and current["metadata"]["uid"] != uid):
            return False
        after = copy.deepcopy(current)
        after["metadata"].setdefault("deletionTimestamp", self._now())
        self._write("delete", key, after)
        return True

    async def record_event(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        if self.failure is None:
            self.events.append(RecordedEvent(about["metadata"]["name"], reason, message, warning))

    # --- storage ---------------------------------------------------------------------------------

    def _check_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _check_kind(self, kind: Kind) -> None:
        self._check_failure()
        if kind in self.unknown:
            raise KubeError(f"the server could not find the requested resource: {kind.kind}", 404)

    def _key(self, manifest: Manifest) -> ObjectKey:
        kind = kind_of(manifest)
        self._check_kind(kind)
        metadata = manifest["metadata"]
        return ObjectKey(kind, metadata.get("namespace", ""), metadata["name"])

    def _check_uid(self, key: ObjectKey, uid: str | None) -> None:
        now = self.objects.get(key)
        if uid and (now is None or now["metadata"]["uid"] != uid):
            raise KubeError(f"uid mismatch: {key.kind.kind} {key.name} has another uid", 409)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock() // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _create(self, verb: str, key: ObjectKey, manifest: Manifest) -> Manifest:
        self._created_count += 1
        created = copy.deepcopy(manifest)
        created["metadata"] |= {
            "uid": f"00000000-0000-4000-8000-{self._created_count:012}",
            "creationTimestamp": self._now(),
            "generation": 1,
        }
        return self._store(verb, key, created)

    def _merged(self, key: ObjectKey, part: str, desired: Manifest) -> Manifest:
        before = self._applied.get((key, part), {})
        self._applied[key, part] = copy.deepcopy(desired)
        return _merge(_without(copy.deepcopy(self.objects[key]), before, desired), desired)

    def _write(self, verb: str, key: ObjectKey, after: Manifest) -> Manifest:
        before = self.objects[key]
        if after == before:
            return copy.deepcopy(before)
        metadata = after["metadata"]
        for field in ("uid", "creationTimestamp", "generation"):
            metadata[field] = before["metadata"][field]
        if after.get("spec") != before.get("spec"):
            metadata["generation"] += 1
        return self._store(verb, key, after)

    def _store(self, verb: str, key: ObjectKey, after: Manifest) -> Manifest:
        self._version += 1
        after["metadata"]["resourceVersion"] = str(self._version)
        self.objects[key] = after
        self.writes.append(Write(verb, key.kind.kind, key.name))
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self._remove(key)
        return copy.deepcopy(after)

    def _remove(self, key: ObjectKey) -> None:
        uid = self.objects.pop(key)["metadata"]["uid"]
        for part in ("", "status"):
            self._applied.pop((key, part), None)
        for other, manifest in list(self.objects.items()):
            owners = manifest["metadata"].get("ownerReferences") or []
            if other in self.objects and any(owner["uid"] == uid for owner in owners):
                manifest["metadata"].setdefault("deletionTimestamp", self._now())
                self._store("delete", other, manifest)


def _is_subresource(kind: Kind, key: str) -> bool:
    """Whether a part of an object is written only through its subresource."""
    return key == "status" and kind in WITH_STATUS


def _merge(into: Any, patch: Any) -> Any:
    """RFC 7386; changes `into`."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = into if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _without(now: Manifest, before: Manifest, desired: Manifest) -> Manifest:
    """Remove fields that were applied before and are no longer set; changes `now`."""
    for key, value in before.items():
        if key not in now:
            continue
        if key not in desired:
            if isinstance(value, dict) and isinstance(now[key], dict):
                _without(now[key], value, {})
            if not isinstance(now[key], dict) or not now[key]:
                del now[key]
        elif all(isinstance(each, dict) for each in (value, now[key], desired[key])):
            _without(now[key], value, desired[key])
    return now
