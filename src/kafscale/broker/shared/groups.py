"""What the handlers of the group APIs share: client fields, and responses of the coordinator.

Invariants: whatever a request does to its group is done before its handler returns, and thus in the
order of the requests; only the response may be waited for. A problem of the broker is reported as
COORDINATOR_NOT_AVAILABLE, which every group API has and every client retries.
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
from kafscale.net.address import canonical_ip
from kafscale.protocol.codec.wire import Message

Reply = TypeVar("Reply")
Response = TypeVar("Response", bound=Message)


def check_group_id(group_id: str) -> None:
    """Raise for the empty group id, which no group with members may have."""
    if not group_id:
        raise InvalidGroupIdError("the group id is empty")


def new_member_id(context: RequestContext, instance_id: str | None) -> str:
    """A new member id, with the client id or instance id as a readable prefix."""
    name = client_id(context) if instance_id is None else instance_id
    return f"{name}-{uuid.uuid4()}"


def client_id(context: RequestContext) -> str:
    return context.client_id or ""


def client_host(context: RequestContext) -> str:
    """The client's address as Kafka's tools print it: an unresolved host name, and a slash."""
    return f"/{canonical_ip(context.client.host)}"


def respond_when_done(
    reply: asyncio.Future[Reply], respond: Callable[[Reply], Response]
) -> Response | Awaitable[Response]:
    """Convert a group's reply into a response; without a task if the reply is there already."""
    if reply.done():
        return respond(reply.result())
    return _await_reply(reply, respond)


async def _await_reply(
    reply: asyncio.Future[Reply], respond: Callable[[Reply], Response]
) -> Response:
    return respond(await reply)


def group_error_code(error: KafscaleError) -> int:
    """The error code for a group response.

    A request timeout becomes COORDINATOR_NOT_AVAILABLE: consumers treat the former as fatal.
    """
    if isinstance(error, OverloadedError):
        return CoordinatorUnavailableError.code
    return error.code
