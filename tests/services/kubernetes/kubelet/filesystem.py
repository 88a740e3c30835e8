"""The root file system of a container: a part of the machine's, and its volumes.

Programs are the machine's: its system directories, this project, its Python and programs built by
tests, all read-only. The rest (`/etc`, `/tmp`, `/var`, ...) belongs to the container, and is
deleted with it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from services.cache import cache

PROJECT = Path(__file__).parents[4]
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "opt", "dev", "sys")
"""Directories of programs and libraries."""
SETTINGS = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "gai.conf",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "os-release",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
)
"""Entries of `/etc` that are the machine's own."""
OWN = ("/etc", "/proc", "/run", "/tmp", "/var/lib", "/var/log", "/var/tmp")  # noqa: S108
FILES = {
    "/etc/group": "nonroot:x:0:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/passwd": "nonroot:x:0:0:nonroot:/nonexistent:/sbin/nologin\n",
}
"""There is only one user, whatever a pod asks for."""


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of the machine, and its path in the container."""

    source: str
    target: str
    is_read_only: bool = True


def machine() -> tuple[dict[str, str], list[Mount]]:
    """What every container sees of the machine: links and mounts.

    >>> links, mounts = machine()
    >>> all(mount.is_read_only for mount in mounts)
    True
    """
    links = {"/var/run": "../run"}
    mounts = []
    for path in (Path("/", name) for name in SYSTEM):
        if path.is_symlink():
            links[str(path)] = str(path.readlink())
        elif path.exists():
            mounts.append(Mount(str(path), str(path)))
    mounts += [
        Mount(str(path), str(path))
        for path in (PROJECT, Path(sys.base_prefix), cache())
        if path.exists() and not path.is_relative_to("/usr")
    ]
    etc = (Path("/etc", name) for name in SETTINGS)
    mounts += [Mount(str(path.resolve()), str(path)) for path in etc if path.exists()]
    return links, mounts


def own_files(pod: Mapping[str, Any], name_server: str) -> dict[str, str]:
    """The files that differ per pod: host name, hosts and name server."""
    namespace, spec = pod["metadata"]["namespace"], pod["spec"]
    host = host_name(pod)
    domain = f"{namespace}.svc.cluster.local"
    full = f"{host}.{spec['subdomain']}.{domain} " if spec.get("subdomain") else ""
    aliases = [f"{a['ip']} {' '.join(a['hostnames'])}\n" for a in spec.get("hostAliases", ())]
    return FILES | {
        "/etc/hostname": f"{host}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n{pod['status']['podIP']} {full}{host}\n"
        + "".join(aliases),
        "/etc/resolv.conf": f"nameserver {name_server}\n"
        f"search {domain} svc.cluster.local cluster.local\noptions ndots:5 timeout:2\n",
    }


def host_name(pod: Mapping[str, Any]) -> str:
    return pod["spec"].get("hostname") or pod["metadata"]["name"]
