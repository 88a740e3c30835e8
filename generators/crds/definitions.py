"""The two CustomResourceDefinitions: names, printer columns and schemas."""

from typing import Any, Final

import msgspec

from generators.crds.schema import Schema, spec_schema, status_schema
from generators.crds.validation_rules import CLUSTER_RULES, TOPIC_RULES, Rules, add_rules
from kafscale.operator.kube.api import CLUSTERS, TOPICS, Kind, Manifest
from kafscale.operator.spec.cluster import ClusterSpec
from kafscale.operator.spec.status import ClusterStatus, TopicStatus
from kafscale.operator.spec.topic import TopicSpec


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str
    type: str
    path: str
    description: str
    is_wide: bool = False
    """Only with `-o wide`."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of one definition."""

    kind: Kind
    short_name: str
    description: str
    spec: type[msgspec.Struct]
    status: type[msgspec.Struct]
    rules: Rules
    columns: tuple[Column, ...]


_PHASE: Final = Column("Phase", "string", ".status.phase", "The state in one word.")
_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp", "The time since creation.")

RESOURCES: Final = (
    Resource(
        kind=CLUSTERS,
        short_name="kfs",
        description="A Kafka-compatible cluster: stateless brokers, with records in a bucket and"
        " metadata in etcd.",
        spec=ClusterSpec,
        status=ClusterStatus,
        rules=CLUSTER_RULES,
        columns=(
            _PHASE,
            Column("Brokers", "integer", ".status.brokerCount", "The number of brokers."),
            Column("Topics", "integer", ".status.topicCount", "The number of topics."),
            Column(
                "Bootstrap",
                "string",
                ".status.bootstrapServers",
                "The bootstrap servers.",
                is_wide=True,
            ),
            Column(
                "Etcd",
                "integer",
                ".status.etcd.membersReady",
                "The number of healthy etcd members.",
                is_wide=True,
            ),
            Column(
                "Snapshot",
                "date",
                ".status.snapshot.lastTime",
                "The age of the newest backup.",
                is_wide=True,
            ),
            _AGE,
        ),
    ),
    Resource(
        kind=TOPICS,
        short_name="kt",
        description="A topic of a KafscaleCluster.",
        spec=TopicSpec,
        status=TopicStatus,
        rules=TOPIC_RULES,
        columns=(
            Column("Cluster", "string", ".spec.clusterRef", "The cluster of the topic."),
            Column(
                "Partitions", "integer", ".spec.partitions", "The desired number of partitions."
            ),
            _PHASE,
            _AGE,
        ),
    ),
)


def definitions() -> list[Manifest]:
    """Both definitions."""
    return [definition(resource) for resource in RESOURCES]


def definition(resource: Resource) -> Manifest:
    group, version = resource.kind.api_version.split("/")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.kind.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind.kind,
                "listKind": f"{resource.kind.kind}List",
                "plural": resource.kind.plural,
                "singular": resource.kind.kind.lower(),
                "shortNames": [resource.short_name],
                "categories": ["kafscale"],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(each) for each in resource.columns],
                    "schema": {"openAPIV3Schema": schema(resource)},
                }
            ],
        },
    }


def schema(resource: Resource) -> Schema:
    """The schema of a whole resource."""
    return add_rules(
        {
            "description": resource.description,
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": spec_schema(resource.spec),
                "status": status_schema(resource.status),
            },
        },
        resource.rules,
    )


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
        "description": column.description,
        "priority": int(column.is_wide),
    }
