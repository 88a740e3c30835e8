"""The control plane as a whole: a client asks a server over a real socket."""

import asyncio
from contextlib import aclosing

import grpc
import pytest
import uvloop

from kafscale.control_plane.assignment_feed import Holding
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.messages import MetricsSample
from kafscale.control_plane.server import ControlServer
from kafscale.errors import ConfigError, NotOwnerError, StoreUnavailableError, UnknownTopicError
from unit.broker.harness import run
from unit.control_plane.stage import ORDERS_0, ORDERS_1, ScriptedBroker, served, short, take

every_loop = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@every_loop
def test_every_method_is_answered(loop):
    async def story():
        async with served() as client:
            status = await client.status()
            assert (status.broker_id, status.ready) == ("3", True)
            assert [each.log_end_offset for each in status.partitions] == [12]
            assert not (await client.status(with_partitions=False)).partitions

            drained = await client.drain([ORDERS_0], reason="upgrade", deadline_seconds=5)
            assert list(drained.drained) == [ORDERS_0.message]
            assert list(drained.pending) == [ORDERS_1.message]
            assert await client.flush([ORDERS_1]) == [ORDERS_1]
            assert await client.flush() == [ORDERS_0, ORDERS_1]
            assert (await client.seal_tail(ORDERS_0)).rolled_end_offset == 12
            assert (await client.swap_segments(ORDERS_0, "merge-1")).segments_before == 4
            [move] = (await client.rebalance()).moves
            assert (move.from_broker, move.to_broker) == ("3", "4")
            assert client.broker.asked == [
                ("status", True),
                ("status", False),
                ("drain", [ORDERS_0], "upgrade", 5),
                ("flush", [ORDERS_1]),
                ("flush", None),
                ("seal", ORDERS_0),
                ("swap", ORDERS_0, "merge-1"),
                ("rebalance",),
            ]

    run(story, loop)


@every_loop
def test_assignments_are_watched(loop):
    async def story():
        async with served() as client, aclosing(client.watch_assignments("3")) as events:
            assert await take(events, 1) == ["orders/0 assigned 3 @7"]
            client.broker.assign(orders_0=Holding(3, 7, reassigning_to=4))
            assert await take(events, 1) == ["orders/0 moving 3>4 @7"]
            client.broker.assign(orders_0=Holding(4, 8))
            assert await take(events, 1) == ["orders/0 released 3 @7"]

    run(story, loop)


def test_samples_are_sent():
    async def story():
        async def samples():
            for number in range(3):
                yield MetricsSample(broker_id="4", timestamp_ms=number, gauges={"lag": number})

        async with served() as client:
            assert (await client.send_metrics(samples())).message == "3 samples taken"
            [newest] = (await client.status(with_samples=True)).samples
            assert (newest.timestamp_ms, dict(newest.gauges)) == (2, {"lag": 2.0})

    run(story)


@pytest.mark.parametrize(
    ("failure", "status", "details"),
    [
        (UnknownTopicError("there is no topic 'x'"), "NOT_FOUND", "there is no topic 'x'"),
        (NotOwnerError("broker 4 is"), "FAILED_PRECONDITION", "broker 4 is"),
        (StoreUnavailableError("try again"), "UNAVAILABLE", "try again"),
    ],
)
def test_a_refusal_is_a_status_with_a_sentence(failure, status, details):
    async def story():
        async with served() as client:
            client.broker.failure = failure
            with pytest.raises(ControlError) as refused:
                await client.seal_tail(ORDERS_0)
            assert type(refused.value) is ControlError
            assert (refused.value.status, refused.value.details) == (status, details)
            client.broker.failure = None
            await client.seal_tail(ORDERS_0)

    run(story)


def test_a_fault_of_ours_is_logged_and_not_explained(capsys):
    async def story():
        async with served() as client:
            client.broker.failure = ValueError("the secret is 1234")
            with pytest.raises(ControlError, match="its log says more") as refused:
                await client.rebalance()
            assert refused.value.status == "INTERNAL"

    run(story)
    logged = capsys.readouterr().out
    assert "control request failed" in logged
    assert "the secret is 1234" in logged


def test_a_stream_is_refused_like_anything_else():
    async def story():
        async def nobodys():
            yield MetricsSample(timestamp_ms=1)

        async with served() as client:
            with pytest.raises(ControlError, match="INVALID_ARGUMENT"):
                await client.send_metrics(nobodys())

    run(story)


def test_a_method_that_does_not_exist_is_not_implemented():
    async def story():
        async with served() as client:
            ask = client._channel.unary_unary("/kafscale.control.BrokerControl/Dance")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(b"")
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(story)


def test_bytes_that_are_no_message_do_no_harm():
    async def story():
        async with served() as client:
            ask = client._channel.unary_unary("/kafscale.control.BrokerControl/GetStatus")
            with pytest.raises(grpc.aio.AioRpcError):
                await ask(b"\xff\xff\xff")
            await client.status()

    run(story)


def test_who_stops_watching_is_not_watched_for_any_more():
    async def story():
        async with served() as client:
            feed = client.server._feed
            async with aclosing(client.watch_assignments()) as events:
                await anext(events)
                assert len(feed._watchers) == 1
            while feed._watchers:
                await client.status()

    run(story)


def test_one_who_asks_waits_no_longer_than_it_likes():
    async def story():
        async with served() as client:
            client.broker.gate = asyncio.Event()
            with pytest.raises(UnreachableError, match="Deadline"):
                await client._ask("GetStatus", b"", 0.05)
            client.broker.gate.set()
            await client.status()

    run(story)


@every_loop
def test_closing_answers_what_is_under_way_and_ends_watches(loop):
    async def story():
        broker = ScriptedBroker()
        async with served(broker) as client, aclosing(client.watch_assignments()) as events:
            await anext(events)
            broker.gate = asyncio.Event()
            asked = asyncio.ensure_future(client.status())
            await broker.was_asked.wait()
            closing = asyncio.ensure_future(client.server.close())
            with pytest.raises(ControlError, match="ask another one"):
                await anext(events)
            broker.gate.set()
            assert (await asked).broker_id == "3"
            await closing

    run(story, loop)


def test_closing_does_not_wait_for_long():
    async def story():
        broker = ScriptedBroker()
        async with served(broker) as client:
            broker.gate = asyncio.Event()
            asked = asyncio.ensure_future(client.status())
            await broker.was_asked.wait()
            async with asyncio.timeout(2):
                await client.server.close()
            with pytest.raises(UnreachableError):
                await asked

    run(story)


def test_where_nobody_listens_nobody_answers():
    async def story():
        async with served() as client:
            port = client.server.port
            await client.server.close()
        async with ControlClient(f"127.0.0.1:{port}") as client:
            with pytest.raises(UnreachableError, match=f"no broker answers .* at 127.0.0.1:{port}"):
                await client.status()

    run(story)


def test_a_port_that_is_taken_is_told_of():
    async def story():
        async with served() as client:
            other = ControlServer(ScriptedBroker())
            with pytest.raises(ConfigError, match=f"127.0.0.1:{client.server.port}"):
                await other.start("127.0.0.1", client.server.port)

    run(story)


def test_an_interceptor_decides_who_may_ask():
    class Doorman(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, details):
            if ("password", "open") in details.invocation_metadata:
                return await continuation(details)

            async def refuse(_request, context):
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")

            return grpc.unary_unary_rpc_method_handler(refuse)

    async def story():
        server = ControlServer(ScriptedBroker(), interceptors=[Doorman()])
        await server.start("127.0.0.1", 0)
        async with ControlClient(f"127.0.0.1:{server.port}") as client:
            with pytest.raises(ControlError, match="who are you"):
                await client.status()
            ask = client._channel.unary_unary("/kafscale.control.BrokerControl/GetStatus")
            assert await ask(b"", metadata=(("password", "open"),))
        await server.close()

    run(story)


def test_many_changes_arrive_in_order():
    async def story():
        async with served() as client, aclosing(client.watch_assignments()) as events:
            await anext(events)
            for epoch in range(8, 208):
                client.broker.assign(orders_0=Holding(3, epoch))
                await asyncio.sleep(0)
            told = [short(await anext(events)) for _ in range(200)]
            assert told == [f"orders/0 assigned 3 @{epoch}" for epoch in range(8, 208)]

    run(story)
