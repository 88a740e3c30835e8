"""The two CustomResourceDefinitions: names, columns, and what their resources may hold."""

from typing import Any, Final

import msgspec

from kafscale.operator.crd.schema import Schema, spec_schema, status_schema
from kafscale.operator.crd.validation_rules import CLUSTER_RULES, TOPIC_RULES, Rules, ruled
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import CLUSTERS, TOPICS, Kind
from kafscale.operator.spec.cluster import ClusterSpec
from kafscale.operator.spec.status import ClusterStatus, TopicStatus
from kafscale.operator.spec.topic import TopicSpec


class Column(msgspec.Struct, frozen=True):
    """What `kubectl get` shows of a resource."""

    name: str
    type: str
    path: str
    description: str
    is_wide: bool = False
    """Only with `-o wide`."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One of our resources: all that its definition is made from."""

    kind: Kind
    short_name: str
    description: str
    spec: type[msgspec.Struct]
    status: type[msgspec.Struct]
    rules: Rules
    columns: tuple[Column, ...]


_PHASE: Final = Column("Phase", "string", ".status.phase", "What it is about.")
_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp", "How old it is.")

RESOURCES: Final = (
    Resource(
        kind=CLUSTERS,
        short_name="kfs",
        description="A Kafka-compatible cluster: brokers that keep nothing, with their records in a"
        " bucket and their metadata in etcd.",
        spec=ClusterSpec,
        status=ClusterStatus,
        rules=CLUSTER_RULES,
        columns=(
            _PHASE,
            Column("Brokers", "integer", ".status.brokerCount", "How many brokers there are."),
            Column("Topics", "integer", ".status.topicCount", "How many topics there are."),
            Column(
                "Bootstrap",
                "string",
                ".status.bootstrapServers",
                "Where clients begin.",
                is_wide=True,
            ),
            Column(
                "Etcd",
                "integer",
                ".status.etcd.membersReady",
                "How many members are healthy.",
                is_wide=True,
            ),
            Column(
                "Snapshot",
                "date",
                ".status.snapshot.lastTime",
                "How old the newest backup is.",
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
            Column("Cluster", "string", ".spec.clusterRef", "Whose topic it is."),
            Column("Partitions", "integer", ".spec.partitions", "How many are wanted."),
            _PHASE,
            _AGE,
        ),
    ),
)


def definitions() -> list[Manifest]:
    """Both definitions, as the API server takes them."""
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
    """What a whole resource looks like."""
    return ruled(
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
