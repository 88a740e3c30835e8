"""What group requests have in common: hosts, answers that are there and that are not, errors."""

import asyncio

import pytest

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.shared.groups import answered, client_host, told_code
from kafscale.errors import IllegalGenerationError, OverloadedError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatResponse
from unit.broker.handlers.serving import serve


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
def test_a_host_is_shown_as_kafka_s_tools_show_it(host, shown):
    async def body(broker):
        context = broker.context(HEARTBEAT, 4)
        context.client = ClientInfo(host, 50_000)

        assert client_host(context) == shown

    serve(body)


def test_an_answer_that_is_there_needs_no_waiting():
    async def body():
        future = asyncio.get_running_loop().create_future()
        future.set_result(5)
        assert answered(future, respond) == HeartbeatResponse(throttle_time_ms=5)

        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(IllegalGenerationError())
        with pytest.raises(IllegalGenerationError):
            answered(failed, respond)

    asyncio.run(body())


def test_an_answer_that_is_to_come_is_waited_for():
    async def body():
        future = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(answered(future, respond))
        await asyncio.sleep(0)
        assert not waiting.done()
        future.set_result(5)

        assert await waiting == HeartbeatResponse(throttle_time_ms=5)

    asyncio.run(body())


def test_a_request_that_was_not_finished_in_time_may_be_tried_again():
    assert told_code(OverloadedError("late")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert told_code(IllegalGenerationError()) == ErrorCode.ILLEGAL_GENERATION
