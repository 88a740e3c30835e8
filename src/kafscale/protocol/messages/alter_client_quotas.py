"""AlterClientQuotas (49): set and remove quotas of users, client ids and addresses (KIP-546).

Version notes:
* v1: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Float64, Int16, Int32, Message, String


class EntityPart(Message):
    entity_type: String = ""
    """One of "user", "client-id" and "ip"."""
    entity_name: String | None = ""
    """None: the default entity of its type."""


class QuotaChange(Message):
    key: String = ""
    value: Float64 = 0.0
    """Ignored if `remove` is true."""
    remove: Boolean = False


class QuotaToAlter(Message):
    entity: list[EntityPart] = []
    changes: list[QuotaChange] = []


class AlterClientQuotasRequest(Message):
    quotas: list[QuotaToAlter] = []
    validate_only: Boolean = False


class AlteredQuota(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityPart] = []


class AlterClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    quotas: list[AlteredQuota] = []


ALTER_CLIENT_QUOTAS = Api(
    49,
    "AlterClientQuotas",
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    1,
    flexible_since=1,
)
