"""AddPartitionsToTxn (24): make partitions part of a transaction before writing to them (KIP-98).

Version notes:
* v2: the response may have the error PRODUCER_FENCED (KIP-588).
* v3: flexible; the last version that clients use.
* v4: from broker to broker, for any number of transactions, optionally to verify only that
  the partitions are part of it; an error for the whole response (KIP-890).
* v5: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Int64, Message, String, since, until


class TopicToAdd(Message):
    name: String = ""
    partitions: list[Int32] = []


class TransactionToExtend(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Boolean = False
    topics: list[TopicToAdd] = []


class AddPartitionsToTxnRequest(Message):
    transactions: Annotated[list[TransactionToExtend], since(4)] = []
    transactional_id: Annotated[String, until(3)] = ""
    producer_id: Annotated[Int64, until(3)] = 0
    producer_epoch: Annotated[Int16, until(3)] = 0
    topics: Annotated[list[TopicToAdd], until(3)] = []


class AddedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class AddedTopic(Message):
    name: String = ""
    partitions: list[AddedPartition] = []


class ExtendedTransaction(Message):
    transactional_id: String = ""
    topics: list[AddedTopic] = []


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4)] = 0
    transactions: Annotated[list[ExtendedTransaction], since(4)] = []
    topics: Annotated[list[AddedTopic], until(3)] = []


ADD_PARTITIONS_TO_TXN = Api(
    24,
    "AddPartitionsToTxn",
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    5,
    flexible_since=3,
)
