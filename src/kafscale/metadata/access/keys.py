"""The keys of ACLs, SCRAM credentials and quotas. Pure.

    /kafscale/access/acls/{resource type}/{pattern type}/{name}/{principal}/{host}/{operation}/
        {permission}                                          AccessRule
    /kafscale/access/users/{user}/{mechanism}                 ScramCredential
    /kafscale/access/quotas/users/{user}                      Quota; so are the next three
    /kafscale/access/quotas/users/{user}/clients/{client id}
    /kafscale/access/quotas/clients/{client id}
    /kafscale/access/quotas/ips/{address}
    /kafscale/access/decoy-secret                             32 random bytes

Invariant: different records have different keys. All fields of an ACL are in its key, so that no
ACL is stored twice and concurrent additions do not conflict. Names may contain any character and
are escaped; `<default>` stands for the default quota, and no escaped name equals it.
"""

from typing import Final

from kafscale.metadata.access.model import Acl, QuotaEntity, ScramMechanism

ACCESS: Final = "/kafscale/access/"
ACLS: Final = f"{ACCESS}acls/"
USERS: Final = f"{ACCESS}users/"
QUOTAS: Final = f"{ACCESS}quotas/"
DECOY_SECRET: Final = f"{ACCESS}decoy-secret"
"""Derives the salts that unknown users of SCRAM are shown."""

_DEFAULT: Final = "<default>"


def acl(value: Acl) -> str:
    return (
        f"{ACLS}{value.resource_type.name}/{value.pattern_type.name}/{_escape(value.resource_name)}"
        f"/{_escape(value.principal)}/{_escape(value.host)}/{value.operation.name}"
        f"/{value.permission.name}"
    )


def credential(user: str, mechanism: ScramMechanism) -> str:
    return f"{USERS}{_escape(user)}/{mechanism.label}"


def quota(entity: QuotaEntity) -> str:
    """The key of a quota.

    >>> quota(QuotaEntity(user="", client_id="a/b"))
    '/kafscale/access/quotas/users/<default>/clients/a%2Fb'
    """
    names = {"users": entity.user, "clients": entity.client_id, "ips": entity.ip}
    parts = [
        f"{kind}/{_escape(name) or _DEFAULT}" for kind, name in names.items() if name is not None
    ]
    assert parts, "a quota has an entity"
    return QUOTAS + "/".join(parts)


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace("<", "%3C")
