"""What the handlers of the group APIs have in common: who asks, and how an answer comes about.

The laws: whatever a request does to its group is done before its handler returns, so in the order
of the requests; only the answer may be waited for. And a client is told of our own trouble by
COORDINATOR_NOT_AVAILABLE, which every group API knows and every client tries again after.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import (
    CoordinatorUnavailableError,
    InvalidGroupIdError,
    KafscaleError,
    OverloadedError,
)
from kafscale.net.canonical_ip import canonical
from kafscale.protocol.codec.wire import Message

Answer = TypeVar("Answer")
Response = TypeVar("Response", bound=Message)


def check_group_id(group_id: str) -> None:
    """Refuse the one name that a group with members may not have."""
    if not group_id:
        raise InvalidGroupIdError("a group has a name")


def new_member_id(context: RequestContext, instance_id: str | None) -> str:
    """An id for a member that has none yet, which says to people who it is."""
    name = client_id(context) if instance_id is None else instance_id
    return f"{name}-{uuid.uuid4()}"


def client_id(context: RequestContext) -> str:
    return context.client_id or ""


def client_host(context: RequestContext) -> str:
    """The client's address, as Kafka's tools show it: a name that is not known, and a slash."""
    return f"/{canonical(context.client.host)}"


def answered(
    waiting: asyncio.Future[Answer], respond: Callable[[Answer], Response]
) -> Response | Awaitable[Response]:
    """Respond with what a group answers: at once, without a task, where it has answered already."""
    if waiting.done():
        return respond(waiting.result())
    return _when_answered(waiting, respond)


async def _when_answered(
    waiting: asyncio.Future[Answer], respond: Callable[[Answer], Response]
) -> Response:
    return respond(await waiting)


def told_code(error: KafscaleError) -> int:
    """The code by which a client is told of an error.

    That a request was not finished in time ends a consumer, which is not prepared for it.
    """
    if isinstance(error, OverloadedError):
        return CoordinatorUnavailableError.code
    return error.code
