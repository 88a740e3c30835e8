"""DescribeTransactions (65): the state of transactions by their id (KIP-664).

Version notes:
* v0: the only one, and flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String


class DescribeTransactionsRequest(Message):
    transactional_ids: list[String] = []


class TopicInTransaction(Message):
    name: String = ""
    partitions: list[Int32] = []


class DescribedTransaction(Message):
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    """-1 when none is open."""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicInTransaction] = []


class DescribeTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    transactions: list[DescribedTransaction] = []


DESCRIBE_TRANSACTIONS = Api(
    65,
    "DescribeTransactions",
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    0,
    flexible_since=0,
)
