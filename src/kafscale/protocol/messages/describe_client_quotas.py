"""DescribeClientQuotas (48): list the quotas of users, client ids and addresses (KIP-546).

An entity is a combination of parts, such as user "alice" with client id "loader".

Version notes:
* v1: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Float64, Int8, Int16, Int32, Message, String


class EntityFilter(Message):
    entity_type: String = ""
    """One of "user", "client-id" and "ip"."""
    match_type: Int8 = 0
    """0 the name in `match`, 1 the default entity, 2 any name that is given."""
    match: String | None = ""


class DescribeClientQuotasRequest(Message):
    filters: list[EntityFilter] = []
    strict: Boolean = False
    """True: leave out entities that have parts which no filter names."""


class EntityPart(Message):
    entity_type: String = ""
    entity_name: String | None = ""
    """None: the default entity of its type."""


class QuotaValue(Message):
    key: String = ""
    value: Float64 = 0.0


class DescribedQuota(Message):
    entity: list[EntityPart] = []
    values: list[QuotaValue] = []


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    quotas: list[DescribedQuota] | None = []
    """None where there is an error."""


DESCRIBE_CLIENT_QUOTAS = Api(
    48,
    "DescribeClientQuotas",
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    1,
    flexible_since=1,
)
