"""What `kafscale quota` asks of a cluster, as plain data: the form in which programs get it."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafscale.admin.security.quota_values import name
from kafscale.client.client import Client
from kafscale.client.errors import check
from kafscale.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityPart,
    QuotaChange,
    QuotaToAlter,
)
from kafscale.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
    EntityFilter,
)
from kafscale.security.quota.entities import EXACT, IS_DEFAULT

Data = dict[str, Any]
Entity = Mapping[str, str | None]
"""The parts of whom a quota is for, by type; None is the default."""


async def describe(client: Client, entity: Entity, *, strict: bool = False) -> list[Data]:
    """The quotas of all that have these parts; `strict`: and no others."""
    filters = [
        EntityFilter(kind, IS_DEFAULT if who is None else EXACT, who)
        for kind, who in entity.items()
    ]
    response = await client.ask_controller(
        DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(filters, strict)
    )
    check("quotas", response.error_code, response.error_message)
    return [
        {
            "entity": {part.entity_type: part.entity_name for part in quota.entity},
            "limits": {limit.key: limit.value for limit in quota.values},
        }
        for quota in response.quotas or ()
    ]


async def alter(client: Client, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """Set limits of somebody, and remove those that are None."""
    asked = QuotaToAlter(
        [EntityPart(kind, who) for kind, who in entity.items()],
        [QuotaChange(key, value or 0.0, value is None) for key, value in changes.items()],
    )
    response = await client.ask_controller(
        ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(quotas=[asked])
    )
    (altered,) = response.quotas
    check(name(entity), altered.error_code, altered.error_message)


async def remove(client: Client, entity: Entity, keys: Sequence[str]) -> list[str]:
    """Remove limits of somebody, all of them where none is named: those that were there."""
    described = await describe(client, entity, strict=True)
    limits = described[0]["limits"] if described else {}
    removed = [key for key in limits if not keys or key in keys]
    if removed:
        await alter(client, entity, dict.fromkeys(removed))
    return removed
