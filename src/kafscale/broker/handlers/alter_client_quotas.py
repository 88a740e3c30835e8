"""AlterClientQuotas: v0-1.

Behaviour:
* The quotas of each entity are changed all together or not at all; each entity succeeds or fails on
  its own. When it is answered, a change holds here; the other brokers hear of it at once.
* An entity, or a key of one, that stands in the request twice is refused, and answered once.
* To remove what is not there is no error, whatever its key.
* Needs ALTER_CONFIGS on the cluster, CLUSTER_AUTHORIZATION_FAILED otherwise for every entity.
* `validate_only` checks all of this and changes nothing.

Version notes: both versions are served alike.
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
    named = Counter(_name(quota.entity) for quota in request.quotas)
    # Of those that stand there twice one is as good as another: all of them are refused.
    asked = {_name(quota.entity): quota for quota in request.quotas}
    return AlterClientQuotasResponse(
        quotas=await asyncio.gather(
            *(
                _alter(context, quota, is_only=named[name] == 1, check=request.validate_only)
                for name, quota in asked.items()
            )
        )
    )


def error_response(
    _context: RequestContext, request: AlterClientQuotasRequest, error: KafscaleError
) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(quotas=[_failed(quota, error) for quota in request.quotas])


async def _alter(
    context: RequestContext, quota: QuotaToAlter, *, is_only: bool, check: bool
) -> AlteredQuota:
    try:
        if not is_only:
            raise InvalidRequestError("Each entity must appear at most once.")
        entity = entity_of(_parts(quota.entity))
        changes = _changes(entity, quota.changes)
        if not check:
            await context.broker.access_store.alter_quota(entity, changes)
            context.broker.audit.changed(
                context, "quota altered", entity=dict(_parts(quota.entity)), quota=changes
            )
    except KafscaleError as error:
        return _failed(quota, error)
    return AlteredQuota(error_message=None, entity=quota.entity)


def _changes(entity: QuotaEntity, asked: Sequence[QuotaChange]) -> dict[str, float | None]:
    """What to set, and what to remove; raises what is wrong about it."""
    changes: dict[str, float | None] = {}
    for change in asked:
        if change.key in changes:
            raise InvalidRequestError(f"Duplicate quota key {change.key}")
        if not change.remove:
            quota_type_for(entity, change.key).check(change.value)
        changes[change.key] = None if change.remove else change.value
    return changes


def _parts(entity: Sequence[EntityPart]) -> list[Part]:
    return [(part.entity_type, part.entity_name) for part in entity]


def _name(entity: Sequence[EntityPart]) -> frozenset[Part]:
    """Who is meant, in whatever order the parts stand."""
    return frozenset(_parts(entity))


def _failed(quota: QuotaToAlter, error: KafscaleError) -> AlteredQuota:
    return AlteredQuota(error_code=error.code, error_message=str(error), entity=quota.entity)
