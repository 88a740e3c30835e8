"""DescribeClientQuotas: v0-1.

Behaviour:
* The quotas of all entities that every filter matches; without filters, all of them. `strict`
  leaves out entities with parts that no filter names.
* An address cannot be looked for together with a user or a client id, which no entity has.
* Needs DESCRIBE_CONFIGS on the cluster, CLUSTER_AUTHORIZATION_FAILED otherwise.

Version notes: both versions are served alike.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, QuotaEntity, ResourceType
from kafscale.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuota,
    EntityPart,
    QuotaValue,
)
from kafscale.security.quota.entities import Filter, parts_of, select


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    context.require(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
    filters = [Filter(each.entity_type, each.match_type, each.match) for each in request.filters]
    kinds = [each.kind for each in filters]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise InvalidRequestError(
                f"Entity type {kind} cannot appear more than once in the filter."
            )
    quotas = context.broker.access_store.quotas
    return DescribeClientQuotasResponse(
        error_message=None,
        quotas=[
            DescribedQuota(
                entity=[EntityPart(kind, name) for kind, name in parts_of(entity)],
                values=[QuotaValue(key, value) for key, value in sorted(quotas[entity].items())],
            )
            for entity in sorted(select(quotas, filters, strict=request.strict), key=_order)
        ],
    )


def error_response(
    _context: RequestContext, _request: DescribeClientQuotasRequest, error: KafscaleError
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=str(error), quotas=None
    )


def _order(entity: QuotaEntity) -> list[tuple[str, str]]:
    return [(kind, name or "") for kind, name in parts_of(entity)]
