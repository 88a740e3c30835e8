"""ListTransactions (66): all transactions that a broker coordinates (KIP-664).

Version notes:
* v0: flexible from the start.
* v1: only transactions that have been open for some time (KIP-994).
* v2: only ids that match a regular expression (KIP-1152).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String, since


class ListTransactionsRequest(Message):
    state_filters: list[String] = []
    """Empty for transactions in any state."""
    producer_id_filters: list[Int64] = []
    """Empty for transactions of any producer."""
    duration_filter_ms: Annotated[Int64, since(1)] = -1
    """Only those open for longer than this; -1 for all."""
    transactional_id_pattern: Annotated[String | None, since(2)] = None
    """In the syntax of RE2/J; null or empty for all."""


class ListedTransaction(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    """The requested states that do not exist."""
    transactions: list[ListedTransaction] = []


LIST_TRANSACTIONS = Api(
    66, "ListTransactions", ListTransactionsRequest, ListTransactionsResponse, 2, flexible_since=0
)
