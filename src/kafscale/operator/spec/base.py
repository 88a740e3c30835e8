"""Common types of specs."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a spec."""


def text(description: str) -> Meta:
    """The description of a field, as `kubectl explain` shows it."""
    return Meta(description=description)


def list_map(key: str, description: str) -> Meta:
    """The description of a list whose entries are merged by a key."""
    return Meta(
        description=description,
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]},
    )


Count = Annotated[int, Meta(ge=1, le=1_000_000)]
BrokerCount = Annotated[int, Meta(ge=1, le=1000)]
Labels = dict[str, str]
Manifests = list[dict[str, Any]]
"""Parts of Kubernetes' own API, which Kubernetes validates."""
_BUCKET = r"(arn:[a-z0-9-]+:s3:[a-z0-9-]*:[0-9]*:)?[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
BucketName = Annotated[str, Meta(max_length=128, pattern=f"^{_BUCKET}$")]
OptionalBucketName = Annotated[str, Meta(max_length=128, pattern=f"^({_BUCKET})?$")]
Region = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z0-9-]*$")]
"""Regions and names of buckets become parts of host names."""
_NAME = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
ObjectName = Annotated[str, Meta(min_length=1, max_length=253, pattern=f"^{_NAME}$")]
"""The name of another object in the same namespace."""
Host = Annotated[
    str, Meta(max_length=253, pattern=r"^(\*\.)?[0-9A-Za-z]([-.:0-9A-Za-z]*[0-9A-Za-z])?$")
]
"""A host name, also one of a wildcard certificate, or an address."""
OptionalObjectName = Annotated[str, Meta(max_length=253, pattern=f"^({_NAME})?$")]
Quantity = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
"""A quantity as Kubernetes writes it: 500m, 2."""
Size = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(k|Ki|M|Mi|G|Gi|T|Ti)?$")]
"""A number of bytes as Kubernetes writes it: 512Mi, 2Gi."""


class ResourceMap(Spec, frozen=True, kw_only=True):
    """CPU and memory."""

    cpu: Annotated[Quantity, text("CPU cores, such as 2 or 500m.")]
    memory: Annotated[Size, text("Bytes, such as 4Gi.")]


class Resources(Spec, frozen=True, kw_only=True):
    """CPU and memory of a container: requests and limits."""

    requests: Annotated[ResourceMap, text("What the scheduler reserves.")] = field(
        default_factory=lambda: ResourceMap(cpu="500m", memory="1Gi")
    )
    limits: Annotated[ResourceMap, text("The maximum.")] = field(
        default_factory=lambda: ResourceMap(cpu="2", memory="4Gi")
    )


class SecretMount(Spec, frozen=True, kw_only=True):
    """A Secret mounted as files."""

    name: Annotated[ObjectName, text("The name of the Secret.")]
    mount_path: Annotated[
        str, Meta(pattern=r"^/\S+$", description="The directory of the files, one per entry.")
    ]
