"""What to do about a topic: from what is wanted, what was done before and what there is. Pure.

The laws:

1. Three ways are compared: what the resource says, what was applied of it last, and what the topic
   has. Only what has changed in the resource since is made so; what others have changed in the
   topic since is left alone, and told of in the condition `InSync`.
2. Partitions are only ever added. A config is reset only if we have set it, the resource names it
   no longer, and it still has the value that we gave it.
3. A topic that is not the one of last time, or that was never ours, is adopted: all that the
   resource names is made so, and nothing else is touched.
4. A resource that is wrong, or that is not the oldest of its topic, changes nothing.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.errors import InvalidConfigError, InvalidTopicError
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics import config_validation, names
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.operator.conditions import Condition, bad, ok
from kafscale.operator.spec.status import AppliedStatus, TopicStatus
from kafscale.operator.spec.topic import TopicResource, TopicSpec

READY: Final = "Ready"
"""The condition: whether the topic is there, and what the resource says was made so."""
IN_SYNC: Final = "InSync"
"""The condition: whether the topic still is as the resource says."""

PHASE_PENDING: Final = "Pending"
PHASE_READY: Final = "Ready"
PHASE_FAILED: Final = "Failed"
PHASE_DELETING: Final = "Deleting"

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"

DRIFTS_MAX: Final = 5
"""How many differences are told of by name."""

_DEFAULTS: Final = TopicDefaults({name: row.default for name, row in TOPIC_CONFIGS.items()})
_NOTHING_APPLIED: Final = AppliedStatus()


class Create(msgspec.Struct, frozen=True):
    """Make the topic."""

    partitions: int
    configs: Mapping[str, str]


class Grow(msgspec.Struct, frozen=True):
    """Add partitions until there are this many."""

    partitions: int


class Alter(msgspec.Struct, frozen=True):
    """Change configs."""

    assigned: Mapping[str, str]
    resets: Mapping[str, str]
    """What goes back to its default, each with the value that it has to have still."""

    def on(self, configs: Mapping[str, str]) -> dict[str, str]:
        """The configs of a topic afterwards, whatever they have become meanwhile."""
        kept = {
            name: value
            for name, value in configs.items()
            if name not in self.resets or self.resets[name] != value
        }
        return kept | dict(self.assigned)


Action = Create | Grow | Alter


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, and what is to be said once it is done."""

    phase: str
    conditions: tuple[Condition, ...]
    actions: tuple[Action, ...] = ()
    """In this order; none is nothing to do."""
    applied: AppliedStatus | None = None
    """What is to be remembered as applied."""
    is_adoption: bool = False
    """Whether a topic that was there before becomes ours."""


def plan(
    resource: TopicResource, before: TopicStatus, topic: Topic | None, older: TopicResource | None
) -> Plan:
    """What to do; `before` is the last status, `older` a resource that has the topic already."""
    if older is not None:
        return refused(
            before,
            "Conflict",
            f"topic {resource.topic_name!r} belongs to the resource {older.name!r}, which is"
            " older; delete one of the two, or set topicName",
        )
    try:
        names.check(resource.topic_name)
        wanted = wanted_configs(resource.spec)
    except InvalidTopicError as error:
        return refused(before, "InvalidName", str(error))
    except InvalidConfigError as error:
        return refused(before, "InvalidConfig", str(error))
    applied = AppliedStatus(partitions=resource.spec.partitions, config=wanted)
    if topic is None:
        return Plan(
            phase=PHASE_READY,
            conditions=_satisfied(
                resource.spec.partitions, resource.spec.partitions, wanted, wanted
            ),
            actions=(Create(resource.spec.partitions, wanted),),
            applied=applied,
        )
    return _brought(resource.spec, before, topic, applied)


def wanted_configs(spec: TopicSpec) -> dict[str, str]:
    """The configs that a resource names, as they are stored; raises `InvalidConfigError`."""
    for name, field in ((RETENTION_MS, "retentionMs"), (RETENTION_BYTES, "retentionBytes")):
        if name in spec.config:
            raise InvalidConfigError(f"{name} has a field of its own: use {field}")
    fields = {RETENTION_MS: str(spec.retention_ms), RETENTION_BYTES: str(spec.retention_bytes)}
    return config_validation.validate({**fields, **spec.config}, _DEFAULTS)


def refused(before: TopicStatus, reason: str, message: str) -> Plan:
    """Nothing to do, for it cannot be done."""
    return Plan(
        phase=PHASE_FAILED, conditions=(bad(READY, reason, message),), applied=before.applied
    )


def is_ours(before: TopicStatus, topic: Topic) -> bool:
    """Whether this is the topic that the resource was last applied to."""
    return before.topic_id == topic.id.hex()


def _brought(spec: TopicSpec, before: TopicStatus, topic: Topic, applied: AppliedStatus) -> Plan:
    is_adoption = not is_ours(before, topic)
    last = _NOTHING_APPLIED if is_adoption else before.applied or _NOTHING_APPLIED
    alter = _alteration(applied.config, last.config, topic.configs)
    actions: list[Action] = []
    if spec.partitions > topic.partitions:
        actions.append(Grow(spec.partitions))
    if alter.assigned or alter.resets:
        actions.append(alter)
    return Plan(
        phase=PHASE_READY,
        conditions=_satisfied(
            spec.partitions,
            max(spec.partitions, topic.partitions),
            applied.config,
            alter.on(topic.configs),
        ),
        actions=tuple(actions),
        applied=applied,
        is_adoption=is_adoption,
    )


def _alteration(
    wanted: Mapping[str, str], last: Mapping[str, str], now: Mapping[str, str]
) -> Alter:
    return Alter(
        {
            name: value
            for name, value in wanted.items()
            if last.get(name) != value and now.get(name) != value
        },
        {
            name: value
            for name, value in last.items()
            if name not in wanted and now.get(name) == value
        },
    )


def _satisfied(
    wanted_partitions: int, partitions: int, wanted: Mapping[str, str], configs: Mapping[str, str]
) -> tuple[Condition, ...]:
    """What is true of a topic that has been brought to what its resource says."""
    drifts = [
        f"{name} is {configs.get(name, 'at its default')}, not {value}"
        for name, value in sorted(wanted.items())
        if configs.get(name) != value
    ]
    if partitions > wanted_partitions:
        drifts.insert(0, f"there are {partitions} partitions, not {wanted_partitions}")
    ready = ok(READY, "Applied", f"the topic has {partitions} partitions")
    if not drifts:
        return ready, ok(IN_SYNC, "AsWanted")
    told = "; ".join(drifts[:DRIFTS_MAX]) + ("; and more" if len(drifts) > DRIFTS_MAX else "")
    return ready, bad(
        IN_SYNC,
        "ChangedElsewhere",
        f"{told}. That was changed through Kafka's API, or was so before, and is left alone.",
    )
