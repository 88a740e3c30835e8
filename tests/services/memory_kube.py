"""The API server of Kubernetes in memory: every promise of `Kube`, and no controllers behind it.

The laws: who asks gets copies. What is applied takes away what the same applier had applied before
and names no longer, and leaves all else; lists are one value each. Only what changes something
makes a new version, and only what changes a spec a new generation. What has finalizers stays until
they are gone; what belongs to it goes with it, at once.

`objects` is what there is, `told` the events, `writes` every write that has changed something;
`failure`, while there is one, is what every question is answered with.
"""

import copy
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafscale.errors import KubeError
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import (
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
"""The kinds that this server has no objects of."""


class Place(NamedTuple):
    kind: Kind
    namespace: str
    name: str


class RecordedEvent(NamedTuple):
    """An event."""

    name: str
    reason: str
    message: str
    warning: bool


class Write(NamedTuple):
    """A write that has changed something."""

    verb: str
    kind: str
    name: str


class MemoryKube:
    """A `Kube` that is a dictionary."""

    def __init__(self, clock: Callable[[], int] = lambda: START_MS) -> None:
        """`clock` is in milliseconds, and stamps what is made and deleted."""
        self.objects: dict[Place, Manifest] = {}
        self.events: list[RecordedEvent] = []
        self.writes: list[Write] = []
        self.failure: KubeError | None = None
        self._clock = clock
        self._applied: dict[tuple[Place, str], Manifest] = {}
        self._version = 0
        self._made = 0

    # --- what is asked --------------------------------------------------------------------------

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self._begin(kind)
        return copy.deepcopy(self.objects.get(Place(kind, namespace, name)))

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        self._begin(kind)
        wanted = (labels or {}).items()
        return [
            copy.deepcopy(found)
            for place, found in sorted(self.objects.items(), key=lambda item: item[0][1:])
            if place.kind == kind
            and namespace in {"", place.namespace}
            and wanted <= (found["metadata"].get("labels") or {}).items()
        ]

    async def supports(self, kind: Kind) -> bool:
        self._answer()
        return kind not in UNKNOWN

    # --- what is told ---------------------------------------------------------------------------

    async def apply(self, manifest: Manifest) -> Manifest:
        place = self._place(manifest)
        self._check_same(place, manifest["metadata"].get("uid"))
        wanted = {key: manifest[key] for key in manifest if not _is_apart(place.kind, key)}
        if place not in self.objects:
            self._applied[place, ""] = copy.deepcopy(wanted)
            return self._make("apply", place, wanted)
        return self._write("apply", place, self._merged(place, "", wanted))

    async def apply_status(self, manifest: Manifest) -> None:
        place = self._place(manifest)
        if place in self.objects:
            wanted = {"status": manifest["status"]}
            self._write("status", place, self._merged(place, "status", wanted))

    async def create(self, manifest: Manifest) -> Manifest | None:
        place = self._place(manifest)
        if place in self.objects:
            return None
        return self._make(
            "create",
            place,
            {key: manifest[key] for key in manifest if not _is_apart(place.kind, key)},
        )

    async def replace(self, manifest: Manifest) -> Manifest | None:
        """Write an object as a whole; None if it is not the one any more that was read."""
        place = self._place(manifest)
        now = self.objects.get(place)
        read = manifest["metadata"].get("resourceVersion")
        if now is None or read not in {None, now["metadata"]["resourceVersion"]}:
            return None
        return self._write("replace", place, copy.deepcopy(manifest))

    async def merge_patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        self._begin(kind)
        place = Place(kind, namespace, name)
        if place not in self.objects:
            return None
        if subresource:
            part = {"status": {"status"}, "scale": {"spec"}}[subresource]
            patch = {key: patch[key] for key in patch if key in part}
        else:
            patch = {key: patch[key] for key in patch if not _is_apart(kind, key)}
        return self._write(
            subresource or "merge", place, _merge(copy.deepcopy(self.objects[place]), patch)
        )

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        self._begin(kind)
        place = Place(kind, namespace, name)
        found = self.objects.get(place)
        if found is None or (uid and found["metadata"]["uid"] != uid):
            return False
        after = copy.deepcopy(found)
        after["metadata"].setdefault("deletionTimestamp", self._now())
        self._write("delete", place, after)
        return True

    async def record_event(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        if self.failure is None:
            self.events.append(RecordedEvent(about["metadata"]["name"], reason, message, warning))

    # --- how it is kept -------------------------------------------------------------------------

    def _answer(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _begin(self, kind: Kind) -> None:
        self._answer()
        if kind in UNKNOWN:
            raise KubeError(f"the server could not find the requested resource: {kind.kind}", 404)

    def _place(self, manifest: Manifest) -> Place:
        kind = kind_of(manifest)
        self._begin(kind)
        metadata = manifest["metadata"]
        return Place(kind, metadata.get("namespace", ""), metadata["name"])

    def _check_same(self, place: Place, uid: str | None) -> None:
        now = self.objects.get(place)
        if uid and (now is None or now["metadata"]["uid"] != uid):
            raise KubeError(f"uid mismatch: {place.kind.kind} {place.name} is another one", 409)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock() // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _make(self, verb: str, place: Place, manifest: Manifest) -> Manifest:
        self._made += 1
        made = copy.deepcopy(manifest)
        made["metadata"] |= {
            "uid": f"00000000-0000-4000-8000-{self._made:012}",
            "creationTimestamp": self._now(),
            "generation": 1,
        }
        return self._keep(verb, place, made)

    def _merged(self, place: Place, part: str, wanted: Manifest) -> Manifest:
        before = self._applied.get((place, part), {})
        self._applied[place, part] = copy.deepcopy(wanted)
        return _merge(_without(copy.deepcopy(self.objects[place]), before, wanted), wanted)

    def _write(self, verb: str, place: Place, after: Manifest) -> Manifest:
        before = self.objects[place]
        if after == before:
            return copy.deepcopy(before)
        metadata = after["metadata"]
        for kept in ("uid", "creationTimestamp", "generation"):
            metadata[kept] = before["metadata"][kept]
        if after.get("spec") != before.get("spec"):
            metadata["generation"] += 1
        return self._keep(verb, place, after)

    def _keep(self, verb: str, place: Place, after: Manifest) -> Manifest:
        self._version += 1
        after["metadata"]["resourceVersion"] = str(self._version)
        self.objects[place] = after
        self.writes.append(Write(verb, place.kind.kind, place.name))
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self._remove(place)
        return copy.deepcopy(after)

    def _remove(self, place: Place) -> None:
        uid = self.objects.pop(place)["metadata"]["uid"]
        for part in ("", "status"):
            self._applied.pop((place, part), None)
        for other, manifest in list(self.objects.items()):
            owners = manifest["metadata"].get("ownerReferences") or []
            if other in self.objects and any(owner["uid"] == uid for owner in owners):
                manifest["metadata"].setdefault("deletionTimestamp", self._now())
                self._keep("delete", other, manifest)


def _is_apart(kind: Kind, key: str) -> bool:
    """Whether a part of an object is written by way of its subresource only."""
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


def _without(now: Manifest, before: Manifest, wanted: Manifest) -> Manifest:
    """An object without what was applied before and is named no longer; changes `now`."""
    for key, value in before.items():
        if key not in now:
            continue
        if key not in wanted:
            if isinstance(value, dict) and isinstance(now[key], dict):
                _without(now[key], value, {})
            if not isinstance(now[key], dict) or not now[key]:
                del now[key]
        elif all(isinstance(each, dict) for each in (value, now[key], wanted[key])):
            _without(now[key], value, wanted[key])
    return now
