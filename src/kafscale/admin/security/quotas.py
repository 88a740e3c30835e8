"""Describe, set and remove quotas; parse and format their limits and entities."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kafscale.client.client import Client
from kafscale.client.errors import check
from kafscale.errors import InvalidRequestError
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
from kafscale.security.quota.types import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    QUOTA_TYPES,
    REQUEST_PERCENTAGE,
)
from kafscale.text.formatting import format_size
from kafscale.text.units import parse_size

DEFAULT_ENTITY: Final = "<default>"
"""How the default entity of a type is shown."""

_BYTE_RATES: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE})

Entity = Mapping[str, str | None]
"""The parts of an entity by type, such as `user`; None is the default entity."""


class EntityQuotas(msgspec.Struct, frozen=True):
    """The limits of one entity by quota key."""

    entity: dict[str, str | None]
    limits: dict[str, float]


async def describe(client: Client, entity: Entity, *, strict: bool = False) -> list[EntityQuotas]:
    """The quotas of all entities that have these parts; `strict`: and no other parts."""
    filters = [
        EntityFilter(entity_type, IS_DEFAULT if entity_name is None else EXACT, entity_name)
        for entity_type, entity_name in entity.items()
    ]
    response = await client.ask_controller(
        DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(filters, strict)
    )
    check("quotas", response.error_code, response.error_message)
    return [
        EntityQuotas(
            entity={part.entity_type: part.entity_name for part in quota.entity},
            limits={limit.key: limit.value for limit in quota.values},
        )
        for quota in response.quotas or ()
    ]


async def alter(client: Client, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """Set the limits of an entity; None removes a limit."""
    change = QuotaToAlter(
        [EntityPart(entity_type, entity_name) for entity_type, entity_name in entity.items()],
        [QuotaChange(key, value or 0.0, value is None) for key, value in changes.items()],
    )
    response = await client.ask_controller(
        ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(quotas=[change])
    )
    (altered,) = response.quotas
    check(format_entity(entity), altered.error_code, altered.error_message)


async def remove(client: Client, entity: Entity, keys: Sequence[str]) -> list[str]:
    """Remove some limits of an entity, all if no key is given; return the removed keys."""
    described = await describe(client, entity, strict=True)
    limits = described[0].limits if described else {}
    removed = [key for key in limits if not keys or key in keys]
    if removed:
        await alter(client, entity, dict.fromkeys(removed))
    return removed


def parse_limit(key: str, text: str) -> float:
    """Parse a limit; a `ValueError` says what is wrong with it.

    >>> parse_limit("producer_byte_rate", "1Mi"), parse_limit("request_percentage", "12.5")
    (1048576.0, 12.5)
    """
    quota_type = QUOTA_TYPES.get(key)
    if quota_type is None:
        raise ValueError(f"{key} is not a quota; the quotas are {', '.join(QUOTA_TYPES)}")
    try:
        value = float(parse_size(text) if key in _BYTE_RATES else text.rstrip("%"))
        quota_type.check(value)
    except InvalidRequestError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        example = "1Mi" if key in _BYTE_RATES else "50"
        raise ValueError(f"{key}: {text!r} is not a rate, such as {example}") from None
    return value


def format_limit(key: str, value: float) -> str:
    """Format a limit.

    >>> format_limit("producer_byte_rate", 1048576), format_limit("request_rate", 0.5)
    ('1.0 MiB/s', '0.5/s')
    """
    if key in _BYTE_RATES:
        return f"{format_size(value)}/s"
    return f"{value:g}%" if key == REQUEST_PERCENTAGE else f"{value:g}/s"


def format_entity(entity: Mapping[str, str | None]) -> str:
    """Format an entity.

    >>> format_entity({"user": "alice", "client-id": None})
    'user alice, client-id <default>'
    """
    return ", ".join(
        f"{entity_type} {DEFAULT_ENTITY if entity_name is None else entity_name}"
        for entity_type, entity_name in entity.items()
    )
