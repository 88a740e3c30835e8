"""Rules that relate fields to each other, or to what they were: in CEL, judged by the API server.

The laws: a rule that refuses says what to do instead. A rule stands with an object that has to be
given, never with one that is filled in as a whole: the API server judges such a filling before its
members are filled in. All others it may then take to be there.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kafscale.operator.crd.schema import Schema


class Rule(msgspec.Struct, frozen=True):
    """What has to hold of a value, `self`; where it names `oldSelf`, only when it is changed."""

    holds: str
    """In CEL."""
    message: str
    field: str = ""
    """The member that is to blame, for who looks for the line."""


Rules = Mapping[str, Sequence[Rule]]
"""By the path of the value; the empty one is that of the whole resource."""

NAME_LENGTH_MAX: Final = 40
"""The names of pods and Services are made from a cluster's, and those end at 63 characters."""

CLUSTER_RULES: Final[Rules] = {
    "": [
        Rule(
            f"size(self.metadata.name) <= {NAME_LENGTH_MAX}"
            " && self.metadata.name.matches('^[a-z][-a-z0-9]*$')",
            f"the name of a cluster has at most {NAME_LENGTH_MAX} letters, digits and dashes, and"
            " begins with a letter: Services are named after it",
        )
    ],
    "spec": [
        Rule(
            "!self.etcd.useKubeEtcd || size(self.etcd.endpoints) == 0",
            "useKubeEtcd and endpoints exclude each other: leave one of them out",
            ".etcd.useKubeEtcd",
        ),
        Rule(
            "self.etcd.restoreFrom == ''"
            " || (!self.etcd.useKubeEtcd && size(self.etcd.endpoints) == 0)",
            "restoreFrom is for an etcd that the operator runs: leave endpoints and useKubeEtcd"
            " out",
            ".etcd.restoreFrom",
        ),
        Rule(
            "self.etcd.snapshots.staleAfterSeconds >= self.etcd.snapshots.intervalSeconds",
            "a snapshot cannot be stale before the next one is due: staleAfterSeconds has to be at"
            " least intervalSeconds",
            ".etcd.snapshots.staleAfterSeconds",
        ),
        Rule(
            "!has(self.autoscaling.minReplicas)"
            " || self.autoscaling.minReplicas <= self.autoscaling.maxReplicas",
            "minReplicas is more than maxReplicas: lower the one or raise the other",
            ".autoscaling.minReplicas",
        ),
        Rule(
            "!self.autoscaling.enabled || has(self.autoscaling.minReplicas)"
            " || self.brokers.replicas <= self.autoscaling.maxReplicas",
            "brokers.replicas is more than autoscaling.maxReplicas: lower the one or raise the"
            " other",
            ".brokers.replicas",
        ),
    ],
    "spec.s3": [
        Rule(
            "!self.createBucket || (self.environment != '' &&"
            " self.bucket == 'kafscale-' + self.environment + '-' + self.region)",
            "a bucket that createBucket makes is called kafscale-ENVIRONMENT-REGION: set bucket,"
            " environment and region to match",
            ".bucket",
        ),
        Rule(
            "!self.replication || (self.replicationBucket != '' && self.replicationRoleArn != '')",
            "replication needs replicationBucket and replicationRoleArn",
            ".replication",
        ),
    ],
    "spec.s3.namespace": [
        Rule("self == oldSelf", "the namespace cannot be changed: all objects are stored under it")
    ],
    "spec.etcd.managed.replicas": [
        Rule("self == oldSelf", "the number of members cannot be changed")
    ],
}

TOPIC_RULES: Final[Rules] = {
    "": [
        Rule(
            "self.spec.topicName != '' || size(self.metadata.name) <= 249",
            "the name of a topic has at most 249 characters: set topicName",
        )
    ],
    "spec.clusterRef": [
        Rule("self == oldSelf", "a topic cannot move to another cluster: make a new resource")
    ],
    "spec.partitions": [
        Rule("self >= oldSelf", "the partitions of a topic can grow and never shrink")
    ],
    "spec.topicName": [
        Rule("self == oldSelf", "a topic cannot be renamed: make a new resource"),
        Rule("!(self in ['.', '..'])", "no topic can be called '.' or '..'"),
    ],
    "spec.config": [
        Rule("!('retention.ms' in self)", "retention.ms has a field of its own: use retentionMs"),
        Rule(
            "!('retention.bytes' in self)",
            "retention.bytes has a field of its own: use retentionBytes",
        ),
    ],
}


def ruled(schema: Schema, rules: Rules) -> Schema:
    """Write rules into the schema of a resource, in place; the same schema."""
    for path, all_of_it in rules.items():
        part = schema
        for name in path.split(".") if path else ():
            part = part["properties"][name]
        part["x-kubernetes-validations"] = [_written(rule) for rule in all_of_it]
    return schema


def _written(rule: Rule) -> dict[str, str]:
    written = {"rule": rule.holds, "message": rule.message}
    return written | ({"fieldPath": rule.field} if rule.field else {})
