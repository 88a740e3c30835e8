"""The keys of what is kept about access: made from what they name, one way only. Pure.

    /kafscale/access/acls/{resource type}/{pattern type}/{name}/{principal}/{host}/{operation}/
        {permission}                                          AccessRule
    /kafscale/access/users/{user}/{mechanism}                 ScramCredential
    /kafscale/access/quotas/users/{user}                      Quota; so are the next three
    /kafscale/access/quotas/users/{user}/clients/{client id}
    /kafscale/access/quotas/clients/{client id}
    /kafscale/access/quotas/ips/{address}

The law: different things have different keys. A rule is its key, so that nobody can add the same
one twice or lose one that another adds. Names may be anything, so they are escaped; `<default>`
stands for all who have no quota of their own, and no name is written so.
"""

from typing import Final

from kafscale.metadata.access.model import Acl, QuotaEntity, ScramMechanism

ACCESS: Final = "/kafscale/access/"
ACLS: Final = f"{ACCESS}acls/"
USERS: Final = f"{ACCESS}users/"
QUOTAS: Final = f"{ACCESS}quotas/"

_DEFAULT: Final = "<default>"


def acl(rule: Acl) -> str:
    return (
        f"{ACLS}{rule.resource_type.name}/{rule.pattern_type.name}/{_escape(rule.resource_name)}"
        f"/{_escape(rule.principal)}/{_escape(rule.host)}/{rule.operation.name}"
        f"/{rule.permission.name}"
    )


def credential(user: str, mechanism: ScramMechanism) -> str:
    return f"{USERS}{_escape(user)}/{mechanism.label}"


def quota(entity: QuotaEntity) -> str:
    """The key of a quota.

    >>> quota(QuotaEntity(user="", client_id="a/b"))
    '/kafscale/access/quotas/users/<default>/clients/a%2Fb'
    """
    named = {"users": entity.user, "clients": entity.client_id, "ips": entity.ip}
    parts = [
        f"{kind}/{_escape(name) or _DEFAULT}" for kind, name in named.items() if name is not None
    ]
    assert parts, "a quota is for somebody"
    return QUOTAS + "/".join(parts)


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace("<", "%3C")
