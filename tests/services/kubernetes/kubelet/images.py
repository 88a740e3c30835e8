"""Images by name: what each of them contains, on this machine."""

import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from services import etcd_programs
from services.etcd_server import PROGRAMS

_VENV = Path(sys.prefix) / "bin"
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """The default command, environment and user of an image."""

    entrypoint: Sequence[str] = ()
    arguments: Sequence[str] = ()
    environment: Mapping[str, str]
    user: int = 0


def find(reference: str) -> Image | None:
    """The image of a reference, whatever its registry, tag or digest.

    >>> find("example.org/team/kafscale-broker:1.2@sha256:00").arguments
    ('broker',)
    >>> find("nginx")
    """
    return _images().get(reference.rpartition("/")[2].partition("@")[0].partition(":")[0])


@functools.cache
def _images() -> Mapping[str, Image]:
    """All images; built lazily, because programs may have to be built."""
    etcd = etcd_programs.directory()
    return {
        "kafscale-broker": _kafscale("broker"),
        "kafscale-operator": _kafscale("operator", programs=[etcd]),
        "kafscale-console": _kafscale("console"),
        "kafscale-spark": _kafscale(),
        "etcd": Image(arguments=("etcd",), environment={"PATH": _path(etcd)}),
        "test-shell": Image(arguments=("/bin/sh",), environment={"PATH": _path(_VENV, PROGRAMS)}),
    }


def _kafscale(*arguments: str, programs: Sequence[Path] = ()) -> Image:
    environment = {"PATH": _path(*programs, _VENV), "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    return Image(entrypoint=("kafscale",), arguments=arguments, environment=environment, user=65532)


def _path(*directories: Path) -> str:
    return ":".join([*map(str, directories), _SYSTEM])
