"""What clusters may have the operator do on their behalf, by their namespace.

Users who may edit a namespace choose the buckets and servers of its clusters, but the operator
connects to them: from its own network, and with its own identity where a cluster names no Secret
with keys.

Invariants:

* Without a Secret with keys, only buckets, prefixes, roles and S3 servers are used that the
  settings allow for the namespace of the cluster. By default none is.
* Servers that a cluster names are used at addresses of other hosts only: not at loopback and
  link-local addresses or those of metadata services of clouds, unless the settings allow the host.
  Names are resolved for that. A DNS server that answers differently a moment later is not
  noticed: only a NetworkPolicy for egress prevents that.
* Hosts and ports are parsed strictly, so that no client parses them differently.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from kafscale.config.sections.operator import Operator
from kafscale.errors import OperatingError
from kafscale.net.address import parse_ip
from kafscale.operator.spec.s3 import S3Spec

_ENDPOINT: Final = re.compile(
    r"(?:https?://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?P<port>:[0-9]{1,5})?"
    r"(?:/[0-9A-Za-z._~/-]*)?"
)
_BUCKET_ARN: Final = re.compile(r"arn:[a-z-]+:s3:::(?P<name>[a-z0-9.-]+)")
_METADATA_SERVICES: Final = tuple(
    ip_network(each)
    for each in (
        "100.100.100.200/32",  # Alibaba Cloud
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle Cloud
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254/128",  # Google Cloud
    )
)
"""Metadata services at addresses that are not link-local."""

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host; empty if it cannot be resolved."""


class NotAllowedError(OperatingError):
    """The operator's settings do not allow what a cluster asks for."""


async def resolve(host: str) -> Sequence[str]:
    """The addresses that clients would connect to, also of notations such as `0x7f.1`."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


class TenantRules:
    """The settings that limit what clusters may ask for."""

    def __init__(self, settings: Operator | None = None, resolve: Resolve = resolve) -> None:
        self._settings = settings or Operator()
        self._resolve = resolve

    def check_kube_etcd(self) -> None:
        """Raise unless clusters may use the etcd of Kubernetes."""
        if not self._settings.allow_kube_etcd:
            raise NotAllowedError(
                "etcd.useKubeEtcd is not allowed, because that etcd has all Secrets of Kubernetes:"
                " set etcd.endpoints, or operator.allowKubeEtcd to true"
            )

    def check_own_identity(self, namespace: str, s3: S3Spec, prefix: str) -> None:
        """Raise unless the operator's own identity may be used for the objects below a prefix."""
        self._require_bucket(namespace, _short_name(s3.bucket), prefix)
        if s3.role_arn:
            self._require_role(namespace, s3.role_arn, "s3.roleArn")
        if s3.endpoint and not self._is_listed(namespace, s3.endpoint):
            raise _rejection(
                f"would send requests with the operator's identity to {s3.endpoint!r}",
                "allowedEndpoints",
                f"{namespace}/{_parse(s3.endpoint)[0]}",
            )
        if s3.replication:
            destination = _BUCKET_ARN.fullmatch(s3.replication_bucket)
            if destination is None:
                raise NotAllowedError(
                    f"s3.replicationBucket {s3.replication_bucket!r} is not of the form"
                    " arn:aws:s3:::NAME"
                )
            self._require_bucket(namespace, destination["name"], prefix)
            self._require_role(namespace, s3.replication_role_arn, "s3.replicationRoleArn")

    async def check_s3_server(self, namespace: str, s3: S3Spec) -> None:
        """Raise if the operator may not connect to the server of a bucket."""
        if not s3.endpoint or self._is_listed(namespace, s3.endpoint):
            return
        host, _ = _parse(s3.endpoint)
        await self._check_addresses(namespace, host)
        if not s3.uses_path_style:
            await self._check_addresses(namespace, f"{_short_name(s3.bucket)}.{host}")

    async def check_etcd_servers(self, namespace: str, endpoints: Iterable[str]) -> None:
        """Raise if the operator may not connect to one of these members."""
        for each in endpoints:
            if not self._is_listed(namespace, each):
                await self._check_addresses(namespace, _parse(each)[0])

    def _require_bucket(self, namespace: str, name: str, prefix: str) -> None:
        """An entry without a prefix allows the prefixes that begin with the namespace."""
        for entry in self._settings.allowed_buckets:
            spaces, bucket, *prefixes = entry.split("/")
            allowed = prefixes[0] if prefixes else f"{namespace}.*"
            if _matches(spaces, namespace) and _matches(bucket, name) and _matches(allowed, prefix):
                return
        more = "" if prefix.startswith(f"{namespace}.") else f"/{prefix}"
        raise _rejection(
            f"names no Secret with keys for bucket {name!r}, and would use the operator's identity",
            "allowedBuckets",
            f"{namespace}/{name}{more}",
        )

    def _require_role(self, namespace: str, role: str, field: str) -> None:
        entries = [each.partition("/") for each in self._settings.allowed_roles]
        if not any(
            _matches(spaces, namespace) and _matches(arn, role) for spaces, _, arn in entries
        ):
            raise _rejection(
                f"would use {field} {role!r} with the operator's identity",
                "allowedRoles",
                f"{namespace}/{role}",
            )

    def _is_listed(self, namespace: str, endpoint: str) -> bool:
        """Whether the settings list a server; an entry without a port allows all ports."""
        host, port = _parse(endpoint)
        entries = [each.partition("/") for each in self._settings.allowed_endpoints]
        return any(
            _matches(spaces, namespace)
            and (_matches(server, host) or _matches(server, f"{host}{port}"))
            for spaces, _, server in entries
        )

    async def _check_addresses(self, namespace: str, host: str) -> None:
        for address in await self._resolve(host.strip("[]")):
            if _is_refused(parse_ip(address.partition("%")[0])):
                raise _rejection(
                    f"names the server {host!r} at {address}, which is an address of the operator's"
                    " host, of a local link or of a metadata service",
                    "allowedEndpoints",
                    f"{namespace}/{host}",
                )


def _rejection(what: str, setting: str, entry: str) -> NotAllowedError:
    return NotAllowedError(
        f"this cluster {what}; an administrator can allow it with {entry!r} in operator.{setting}"
    )


def _parse(endpoint: str) -> tuple[str, str]:
    """The host of an endpoint, and its port with the colon, if any."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        raise NotAllowedError(
            f"{endpoint[:300]!r} is not of the form host:port or https://host:port"
        )
    return match["host"].lower(), match["port"] or ""


def _short_name(bucket: str) -> str:
    """The name of a bucket, as requests have it."""
    return bucket.rpartition(":")[2]


def _is_refused(address: IPv4Address | IPv6Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or any(address in network for network in _METADATA_SERVICES)
    )


def _matches(pattern: str, text: str) -> bool:
    """Whether a text has this form; `*` is any text, also an empty one."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
