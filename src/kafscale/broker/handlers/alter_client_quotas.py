"""AlterClientQuotas: v0-1.

Behaviour:
* The quotas of one entity are changed together or not at all; each entity succeeds or fails on its
  own. A change applies here when the response is sent; the watch delivers it to other brokers.
* An entity, or a key of one, that appears twice is refused, and answered once.
* Removing a quota that is not set is no error, whatever its key.
* Requires ALTER_CONFIGS on the cluster, else CLUSTER_AUTHORIZATION_FAILED for every entity.
* `validate_only` performs the same checks and changes nothing.

Version notes: both versions behave alike.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import topic_admission
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, QuotaEntity, ResourceType
from kafscale.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    EntityPart,
    QuotaChange,
    QuotaToAlter,
)
from kafscale.security.quota.entities import Part, entity_of
from kafscale.security.quota.types import quota_type_for


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    topic_admission.check_admin_allowed(context.broker)
    context.require(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    counts = Counter(_key(quota.entity) for quota in request.quotas)
    # Any one of duplicates will do here: all of them are refused.
    by_entity = {_key(quota.entity): quota for quota in request.quotas}
    return AlterClientQuotasResponse(
        quotas=await asyncio.gather(
            *(
                _alter(
                    context, quota, is_only=counts[key] == 1, validate_only=request.validate_only
                )
                for key, quota in by_entity.items()
            )
        )
    )


def error_response(
    _context: RequestContext, request: AlterClientQuotasRequest, error: KafscaleError
) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(quotas=[_failed(quota, error) for quota in request.quotas])


async def _alter(
    context: RequestContext, quota: QuotaToAlter, *, is_only: bool, validate_only: bool
) -> AlteredQuota:
    try:
        if not is_only:
            raise InvalidRequestError("Each entity must appear at most once.")
        entity = entity_of(_parts(quota.entity))
        changes = _changes(entity, quota.changes)
        if not validate_only:
            await context.broker.access_store.alter_quota(entity, changes)
            context.broker.audit.changed(
                context, "quota altered", entity=dict(_parts(quota.entity)), quota=changes
            )
    except KafscaleError as error:
        return _failed(quota, error)
    return AlteredQuota(error_message=None, entity=quota.entity)


def _changes(entity: QuotaEntity, requested: Sequence[QuotaChange]) -> dict[str, float | None]:
    """The values to set, or None to remove; raises if a change is invalid."""
    changes: dict[str, float | None] = {}
    for change in requested:
        if change.key in changes:
            raise InvalidRequestError(f"Duplicate quota key {change.key}")
        if not change.remove:
            quota_type_for(entity, change.key).check(change.value)
        changes[change.key] = None if change.remove else change.value
    return changes


def _parts(entity: Sequence[EntityPart]) -> list[Part]:
    return [(part.entity_type, part.entity_name) for part in entity]


def _key(entity: Sequence[EntityPart]) -> frozenset[Part]:
    """Identifies an entity, whatever the order of its parts."""
    return frozenset(_parts(entity))


def _failed(quota: QuotaToAlter, error: KafscaleError) -> AlteredQuota:
    return AlteredQuota(error_code=error.code, error_message=str(error), entity=quota.entity)
