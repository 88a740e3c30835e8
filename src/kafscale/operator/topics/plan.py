"""Plans the changes of a topic from its resource, the last applied state and the topic. Pure.

Invariants:

1. It is a three-way comparison: the resource, what was last applied of it, and the topic. Only what
   changed in the resource since is applied; changes made to the topic elsewhere are left alone, and
   reported in the condition `InSync`.
2. Partitions are only ever added. A config is reset only if the operator set it, the resource no
   longer names it, and it still has that value.
3. A topic that is not the one of last time, or was never applied to, is adopted: everything that
   the resource names is applied, and nothing else is touched.
4. A resource that is invalid, or not the oldest of its topic, changes nothing.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.errors import InvalidConfigError, InvalidTopicError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics import config_validation, names
from kafscale.operator.spec.status import AppliedStatus, Condition, TopicStatus, bad, ok
from kafscale.operator.spec.topic import TopicResource, TopicSpec

READY: Final = "Ready"
"""The condition: whether the topic exists and the resource was applied."""
IN_SYNC: Final = "InSync"
"""The condition: whether the topic still is as the resource says."""

PHASE_PENDING: Final = "Pending"
PHASE_READY: Final = "Ready"
PHASE_FAILED: Final = "Failed"
PHASE_DELETING: Final = "Deleting"

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"

DIFFERENCES_MAX: Final = 5
"""How many differences are named in a message."""

_NOTHING_APPLIED: Final = AppliedStatus()


class Create(msgspec.Struct, frozen=True):
    """Create the topic."""

    partitions: int
    configs: Mapping[str, str]


class Grow(msgspec.Struct, frozen=True):
    """Add partitions up to this number."""

    partitions: int


class Alter(msgspec.Struct, frozen=True):
    """Change configs."""

    assigned: Mapping[str, str]
    resets: Mapping[str, str]
    """Configs that go back to their defaults, with the value that each must still have."""

    def on(self, configs: Mapping[str, str]) -> dict[str, str]:
        """The configs of a topic afterwards, whatever they are meanwhile."""
        kept = {
            name: value
            for name, value in configs.items()
            if name not in self.resets or self.resets[name] != value
        }
        return kept | dict(self.assigned)


Action = Create | Grow | Alter


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The actions, and the status once they are executed."""

    phase: str
    conditions: tuple[Condition, ...]
    actions: tuple[Action, ...] = ()
    """In this order; empty if nothing has to be done."""
    applied: AppliedStatus | None = None
    """What to record as applied."""
    is_adoption: bool = False
    """Whether the topic existed before, and is managed by the resource from now on."""


def plan(
    resource: TopicResource,
    before: TopicStatus,
    topic: Topic | None,
    conflicting: TopicResource | None,
) -> Plan:
    """Plan; `before` is the last status, `conflicting` a resource that owns the topic already."""
    if conflicting is not None:
        return rejected(
            before,
            "Conflict",
            f"topic {resource.topic_name!r} belongs to the older resource {conflicting.name!r};"
            " delete one of the two, or set topicName",
        )
    try:
        names.check(resource.topic_name)
        desired = desired_configs(resource.spec)
    except InvalidTopicError as error:
        return rejected(before, "InvalidName", str(error))
    except InvalidConfigError as error:
        return rejected(before, "InvalidConfig", str(error))
    applied = AppliedStatus(partitions=resource.spec.partitions, config=desired)
    if topic is None:
        return Plan(
            phase=PHASE_READY,
            conditions=_conditions(
                resource.spec.partitions, resource.spec.partitions, desired, desired
            ),
            actions=(Create(resource.spec.partitions, desired),),
            applied=applied,
        )
    return _plan_existing(resource.spec, before, topic, applied)


def desired_configs(spec: TopicSpec) -> dict[str, str]:
    """The configs that a resource names, normalized; raises `InvalidConfigError`."""
    for name, field in ((RETENTION_MS, "retentionMs"), (RETENTION_BYTES, "retentionBytes")):
        if name in spec.config:
            raise InvalidConfigError(f"{name} has a field of its own: use {field}")
    fields = {RETENTION_MS: str(spec.retention_ms), RETENTION_BYTES: str(spec.retention_bytes)}
    return config_validation.validate({**fields, **spec.config})


def rejected(before: TopicStatus, reason: str, message: str) -> Plan:
    """A plan that does nothing, because the resource cannot be applied."""
    return Plan(
        phase=PHASE_FAILED, conditions=(bad(READY, reason, message),), applied=before.applied
    )


def was_applied_to(before: TopicStatus, topic: Topic) -> bool:
    """Whether the resource was last applied to this very topic."""
    return before.topic_id == topic.id.hex()


def _plan_existing(
    spec: TopicSpec, before: TopicStatus, topic: Topic, applied: AppliedStatus
) -> Plan:
    is_adoption = not was_applied_to(before, topic)
    last = _NOTHING_APPLIED if is_adoption else before.applied or _NOTHING_APPLIED
    alter = _diff(applied.config, last.config, topic.configs)
    actions: list[Action] = []
    if spec.partitions > topic.partitions:
        actions.append(Grow(spec.partitions))
    if alter.assigned or alter.resets:
        actions.append(alter)
    return Plan(
        phase=PHASE_READY,
        conditions=_conditions(
            spec.partitions,
            max(spec.partitions, topic.partitions),
            applied.config,
            alter.on(topic.configs),
        ),
        actions=tuple(actions),
        applied=applied,
        is_adoption=is_adoption,
    )


def _diff(desired: Mapping[str, str], last: Mapping[str, str], now: Mapping[str, str]) -> Alter:
    return Alter(
        {
            name: value
            for name, value in desired.items()
            if last.get(name) != value and now.get(name) != value
        },
        {
            name: value
            for name, value in last.items()
            if name not in desired and now.get(name) == value
        },
    )


def _conditions(
    desired_partitions: int, partitions: int, desired: Mapping[str, str], configs: Mapping[str, str]
) -> tuple[Condition, ...]:
    """The conditions of a topic after the plan is executed."""
    differences = [
        f"{name} is {configs.get(name, 'at its default')}, not {value}"
        for name, value in sorted(desired.items())
        if configs.get(name) != value
    ]
    if partitions > desired_partitions:
        differences.insert(0, f"there are {partitions} partitions, not {desired_partitions}")
    ready = ok(READY, "Applied", f"the topic has {partitions} partitions")
    if not differences:
        return ready, ok(IN_SYNC, "Matches")
    message = "; ".join(differences[:DIFFERENCES_MAX]) + (
        "; and more" if len(differences) > DIFFERENCES_MAX else ""
    )
    return ready, bad(
        IN_SYNC,
        "ChangedElsewhere",
        f"{message}. These differ because of changes through Kafka's API or from before the"
        " adoption; the operator does not change them.",
    )
