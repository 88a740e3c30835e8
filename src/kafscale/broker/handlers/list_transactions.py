"""ListTransactions: v0-2.

Behaviour:
* The transactional ids of this broker's shards, by state, producer id, duration and name.
* States that do not exist are returned as unknown, and match nothing.
* A client gets the transactional ids that it may DESCRIBE.

Version notes:
* v1+: a filter by the time that a transaction has been open; others have no duration.
* v2+: a filter by a regular expression, in RE2 syntax; an invalid one is
  INVALID_REGULAR_EXPRESSION.
"""

from collections.abc import Callable
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRegexError
from kafscale.metadata.access.model import ResourceType
from kafscale.protocol.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafscale.transactions.model import TransactionRecord, TransactionState

_QUIET: Final = re2.Options()
_QUIET.log_errors = False


async def handle(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    states = {state.value for state in TransactionState}
    matches = _filter(request, context.broker.clock())
    response = ListTransactionsResponse(
        unknown_state_filters=[each for each in request.state_filters if each not in states],
        transactions=[
            ListedTransaction(record.transactional_id, record.producer_id, record.state)
            async for record in context.broker.transactions.coordinator.list()
            if matches(record)
            and context.can_describe(ResourceType.TRANSACTIONAL_ID, record.transactional_id)
        ],
    )
    return await slices.encoded(context, response, len(response.transactions))


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[TransactionRecord], bool]:
    states, producer_ids = set(request.state_filters), set(request.producer_id_filters)
    pattern = _compiled(request.transactional_id_pattern)
    duration_ms = request.duration_filter_ms

    def matches(record: TransactionRecord) -> bool:
        return (
            (not states or record.state in states)
            and (not producer_ids or record.producer_id in producer_ids)
            and (duration_ms < 0 or _open_ms(record, now_ms) > duration_ms)
            and (pattern is None or pattern.fullmatch(record.transactional_id) is not None)
        )

    return matches


def _open_ms(record: TransactionRecord, now_ms: int) -> int:
    """For how long the newest transaction has been, or was, open."""
    return now_ms - record.started_ms


def _compiled(pattern: str | None) -> Any:
    """The compiled pattern; None if all ids match."""
    if not pattern:
        return None
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        raise InvalidRegexError(f"Transactional ID pattern `{pattern}` is not valid.") from error
