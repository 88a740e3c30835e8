"""AddOffsetsToTxn (25): make the offsets of a group part of a transaction (KIP-98).

Version notes:
* v2: the response may have the error PRODUCER_FENCED (KIP-588).
* v3: flexible.
* v4: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String


class AddOffsetsToTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0


ADD_OFFSETS_TO_TXN = Api(
    25, "AddOffsetsToTxn", AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, 4, flexible_since=3
)
