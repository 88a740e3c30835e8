"""DescribeClientQuotas: v0-1.

Behaviour:
* The quotas of all entities that match every filter; without filters, all of them. `strict` leaves
  out entities with parts that no filter names.
* Filters for an address together with a user or a client id are refused: no entity has both.
* Requires DESCRIBE_CONFIGS on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes: both versions behave alike.
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
    types = [each.kind for each in filters]
    for entity_type in types:
        if types.count(entity_type) > 1:
            raise InvalidRequestError(
                f"Entity type {entity_type} cannot appear more than once in the filter."
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
