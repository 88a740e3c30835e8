"""What group handlers share: client hosts, pending replies and error codes."""

import asyncio

import pytest

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.shared.groups import client_host, group_error_code, respond_when_done
from kafscale.errors import IllegalGenerationError, OverloadedError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from unit.broker.in_memory_broker import run_with_broker


def respond(number):
    return HeartbeatResponse(throttle_time_ms=number)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("192.0.2.1", "/192.0.2.1"),
        ("::ffff:192.0.2.1", "/192.0.2.1"),
        ("2001:db8::1", "/2001:db8::1"),
    ],
)
def test_client_host_is_formatted_like_kafka(host, shown):
    async def body(broker):
        context = broker.context(HEARTBEAT, 4)
        context.client = ClientInfo(host, 50_000)

        assert client_host(context) == shown

    run_with_broker(body)


def test_respond_when_done_returns_a_finished_reply_at_once():
    async def body():
        future = asyncio.get_running_loop().create_future()
        future.set_result(5)
        assert respond_when_done(future, respond) == HeartbeatResponse(throttle_time_ms=5)

        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(IllegalGenerationError())
        with pytest.raises(IllegalGenerationError):
            respond_when_done(failed, respond)

    asyncio.run(body())


def test_respond_when_done_awaits_a_pending_reply():
    async def body():
        future = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(respond_when_done(future, respond))
        await asyncio.sleep(0)
        assert not waiting.done()
        future.set_result(5)

        assert await waiting == HeartbeatResponse(throttle_time_ms=5)

    asyncio.run(body())


def test_group_error_code_makes_timeouts_retriable():
    assert group_error_code(OverloadedError("late")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_error_code(IllegalGenerationError()) == ErrorCode.ILLEGAL_GENERATION
