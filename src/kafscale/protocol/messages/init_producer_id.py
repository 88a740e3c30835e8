"""InitProducerId (22): get a producer id, to write idempotently or in transactions (KIP-98).

With a transactional id, the previous producer is fenced and its open transaction aborted.

Version notes:
* v2: flexible.
* v3: a producer may send its id and epoch, to have the epoch raised after an error (KIP-360).
* v4: the response may have the error PRODUCER_FENCED (KIP-588).
* v5: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
* v6 (two-phase commit, KIP-939) is unstable in Kafka and not declared here.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String, since


class InitProducerIdRequest(Message):
    transactional_id: String | None = ""
    """Null for a producer that is idempotent only."""
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    """-1 when the producer has none yet."""
    producer_epoch: Annotated[Int16, since(3)] = -1


class InitProducerIdResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0


INIT_PRODUCER_ID = Api(
    22, "InitProducerId", InitProducerIdRequest, InitProducerIdResponse, 5, flexible_since=2
)
