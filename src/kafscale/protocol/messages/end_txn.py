"""EndTxn (26): commit or abort a transaction (KIP-98).

Version notes:
* v2: the response may have the error PRODUCER_FENCED (KIP-588).
* v3: flexible.
* v4: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
* v5: every transaction raises the producer's epoch; the response has the one for the next
  (KIP-890).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Int64, Message, String, since


class EndTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Boolean = False
    """True to commit, false to abort."""


class EndTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1


END_TXN = Api(26, "EndTxn", EndTxnRequest, EndTxnResponse, 5, flexible_since=3)
