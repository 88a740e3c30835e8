"""What specs are made of."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a spec."""


def text(description: str) -> Meta:
    """What `kubectl explain` says about a field."""
    return Meta(description=description)


def keyed(key: str, description: str) -> Meta:
    """The same about a list whose entries are told apart by a member, and merged by it."""
    return Meta(
        description=description,
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]},
    )


Count = Annotated[int, Meta(ge=1, le=1_000_000)]
BrokerCount = Annotated[int, Meta(ge=1, le=1000)]
Labels = dict[str, str]
Manifests = list[dict[str, Any]]
"""Parts of Kubernetes' own API, which its own validation judges."""
BucketName = Annotated[
    str, Meta(max_length=128, pattern=r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|arn:[^\s/]+)$")
]
Quantity = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
"""An amount as Kubernetes writes it: 500m, 2."""
Size = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(k|Ki|M|Mi|G|Gi|T|Ti)?$")]
"""A number of bytes as Kubernetes writes it: 512Mi, 2Gi."""


class ResourceMap(Spec, frozen=True, kw_only=True):
    """CPU and memory."""

    cpu: Annotated[Quantity, text("In cores: 2, or 500m.")]
    memory: Annotated[Size, text("In bytes: 4Gi.")]


class Resources(Spec, frozen=True, kw_only=True):
    """What a container is promised, and what it may use at the most."""

    requests: Annotated[ResourceMap, text("What it is promised.")] = field(
        default_factory=lambda: ResourceMap(cpu="500m", memory="1Gi")
    )
    limits: Annotated[ResourceMap, text("What it may use at the most.")] = field(
        default_factory=lambda: ResourceMap(cpu="2", memory="4Gi")
    )


class SecretMount(Spec, frozen=True, kw_only=True):
    """A Secret as files."""

    name: Annotated[str, Meta(min_length=1, description="The name of the Secret.")]
    mount_path: Annotated[
        str, Meta(pattern=r"^/\S+$", description="The directory that its entries are files in.")
    ]
