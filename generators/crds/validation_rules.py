"""Validation rules between fields, or between old and new values, in CEL for the API server.

Invariants: the message of a rule says what to do instead. A rule belongs to an object that is
required, never to one that is defaulted as a whole: the API server validates such a default before
it fills in its fields. All other objects may be assumed to exist.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from generators.crds.schema import Schema


class Rule(msgspec.Struct, frozen=True):
    """What must hold of a value, `self`; rules with `oldSelf` apply to updates only."""

    expression: str
    """In CEL."""
    message: str
    field: str = ""
    """The field that the error refers to."""


Rules = Mapping[str, Sequence[Rule]]
"""By the path of the value; the empty path is the whole resource."""

NAME_LENGTH_MAX: Final = 40
"""Names of pods and Services are built from the cluster's, and are limited to 63 characters."""

CLUSTER_RULES: Final[Rules] = {
    "": [
        Rule(
            f"size(self.metadata.name) <= {NAME_LENGTH_MAX}"
            " && self.metadata.name.matches('^[a-z][-a-z0-9]*$')",
            f"the name of a cluster must start with a letter and have at most {NAME_LENGTH_MAX}"
            " lower-case letters, digits and dashes: Services are named after it",
        )
    ],
    "spec": [
        Rule(
            "!self.etcd.useKubeEtcd || size(self.etcd.endpoints) == 0",
            "useKubeEtcd and endpoints exclude each other: remove one of them",
            ".etcd.useKubeEtcd",
        ),
        Rule(
            "self.etcd.restoreFrom == ''"
            " || (!self.etcd.useKubeEtcd && size(self.etcd.endpoints) == 0)",
            "restoreFrom is only for an etcd that the operator runs: remove endpoints and"
            " useKubeEtcd",
            ".etcd.restoreFrom",
        ),
        Rule(
            "self.etcd.snapshots.staleAfterSeconds >= self.etcd.snapshots.intervalSeconds",
            "a snapshot cannot be stale before the next one is due: staleAfterSeconds must be at"
            " least intervalSeconds",
            ".etcd.snapshots.staleAfterSeconds",
        ),
        Rule(
            "!has(self.autoscaling.minReplicas)"
            " || self.autoscaling.minReplicas <= self.autoscaling.maxReplicas",
            "minReplicas exceeds maxReplicas: lower minReplicas or raise maxReplicas",
            ".autoscaling.minReplicas",
        ),
        Rule(
            "!self.autoscaling.enabled || has(self.autoscaling.minReplicas)"
            " || self.brokers.replicas <= self.autoscaling.maxReplicas",
            "brokers.replicas exceeds autoscaling.maxReplicas: lower replicas or raise maxReplicas",
            ".brokers.replicas",
        ),
    ],
    "spec.s3": [
        Rule(
            "!self.createBucket || (self.environment != '' &&"
            " self.bucket == 'kafscale-' + self.environment + '-' + self.region)",
            "with createBucket, the name of the bucket must be kafscale-ENVIRONMENT-REGION: set"
            " bucket, environment and region to match",
            ".bucket",
        ),
        Rule(
            "!self.replication || (self.replicationBucket != '' && self.replicationRoleArn != '')",
            "replication needs replicationBucket and replicationRoleArn",
            ".replication",
        ),
    ],
    "spec.s3.namespace": [
        Rule("self == oldSelf", "the namespace is immutable: all objects are stored under it")
    ],
    "spec.etcd.managed.replicas": [Rule("self == oldSelf", "the number of members is immutable")],
}

TOPIC_RULES: Final[Rules] = {
    "": [
        Rule(
            "self.spec.topicName != '' || size(self.metadata.name) <= 249",
            "the name of a topic must have at most 249 characters: set topicName",
        )
    ],
    "spec.clusterRef": [
        Rule("self == oldSelf", "a topic cannot move to another cluster: create a new resource")
    ],
    "spec.partitions": [Rule("self >= oldSelf", "the number of partitions can only be increased")],
    "spec.topicName": [
        Rule("self == oldSelf", "a topic cannot be renamed: create a new resource"),
        Rule("!(self in ['.', '..'])", "a topic cannot be named '.' or '..'"),
    ],
    "spec.config": [
        Rule("!('retention.ms' in self)", "retention.ms has a field of its own: use retentionMs"),
        Rule(
            "!('retention.bytes' in self)",
            "retention.bytes has a field of its own: use retentionBytes",
        ),
    ],
}


def add_rules(schema: Schema, rules: Rules) -> Schema:
    """Add rules to the schema of a resource, in place; returns the schema."""
    for path, rules_of_path in rules.items():
        part = schema
        for name in path.split(".") if path else ():
            part = part["properties"][name]
        part["x-kubernetes-validations"] = [_validation(rule) for rule in rules_of_path]
    return schema


def _validation(rule: Rule) -> dict[str, str]:
    validation = {"rule": rule.expression, "message": rule.message}
    return validation | ({"fieldPath": rule.field} if rule.field else {})
