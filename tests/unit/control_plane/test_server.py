"""The control plane as a whole: a client and a server over a real socket."""

import asyncio
from contextlib import aclosing
from random import Random

import grpc
import pytest
import uvloop

from kafscale.control_plane.assignment_feed import PartitionOwner
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.messages import (
    METHODS,
    AddPartitionsToTransactionRequest,
    BrokerStatusResponse,
    MetricsSample,
    TransactionMarker,
)
from kafscale.control_plane.server import ControlServer, GrpcServer
from kafscale.errors import ConfigError, NotOwnerError, StoreUnavailableError, UnknownTopicError
from services.link import Link
from services.link_fault import HEALTHY, Fault
from unit.broker.harness import run
from unit.control_plane.scripted_broker import (
    ORDERS_0,
    ORDERS_1,
    ScriptedBroker,
    describe,
    next_events,
    served,
)

all_event_loops = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@all_event_loops
def test_every_method_has_a_response(loop):
    async def scenario():
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
            assert (await client.swap_segments(ORDERS_0, "merge-1", [8, 9])).segments_before == 4
            [move] = (await client.rebalance()).moves
            assert (move.from_broker, move.to_broker) == ("3", "4")
            marker = TransactionMarker(producer_id=5, partitions=[ORDERS_0.message])
            assert list(await client.write_transaction_markers([marker])) == [0, 7, 0]
            addition = AddPartitionsToTransactionRequest(
                transactional_id="transfers", verify_only=True, partitions=[ORDERS_0.message]
            )
            assert list(await client.add_partitions_to_transaction(addition)) == [0, 51]
            assert client.broker.calls == [
                ("status", True),
                ("status", False),
                ("drain", [ORDERS_0], "upgrade", 5),
                ("flush", [ORDERS_1]),
                ("flush", None),
                ("seal", ORDERS_0),
                ("swap", ORDERS_0, "merge-1", [8, 9]),
                ("rebalance",),
                ("markers", [5]),
                ("transaction", "transfers", True),
            ]

    run(scenario, loop)


@all_event_loops
def test_watch_assignments(loop):
    async def scenario():
        async with served() as client, aclosing(client.watch_assignments("3")) as events:
            assert await next_events(events, 1) == ["orders/0 assigned 3 @7"]
            client.broker.assign(orders_0=PartitionOwner(3, 7, reassigning_to=4))
            assert await next_events(events, 1) == ["orders/0 moving 3>4 @7"]
            client.broker.assign(orders_0=PartitionOwner(4, 8))
            assert await next_events(events, 1) == ["orders/0 released 3 @7"]

    run(scenario, loop)


def test_stream_metrics():
    async def scenario():
        async def samples():
            for number in range(3):
                yield MetricsSample(broker_id="4", timestamp_ms=number, gauges={"lag": number})

        async with served() as client:
            assert (await client.send_metrics(samples())).message == "3 samples accepted"
            [newest] = (await client.status(with_samples=True)).samples
            assert (newest.timestamp_ms, dict(newest.gauges)) == (2, {"lag": 2.0})

    run(scenario)


@pytest.mark.parametrize(
    ("failure", "status", "details"),
    [
        (UnknownTopicError("there is no topic 'x'"), "NOT_FOUND", "there is no topic 'x'"),
        (NotOwnerError("broker 4 is"), "FAILED_PRECONDITION", "broker 4 is"),
        (StoreUnavailableError("try again"), "UNAVAILABLE", "try again"),
    ],
)
def test_error_has_a_status_and_a_message(failure, status, details):
    async def scenario():
        async with served() as client:
            client.broker.failure = failure
            with pytest.raises(ControlError) as rejected:
                await client.seal_tail(ORDERS_0)
            assert type(rejected.value) is ControlError
            assert (rejected.value.status, rejected.value.details) == (status, details)
            client.broker.failure = None
            await client.seal_tail(ORDERS_0)

    run(scenario)


def test_internal_error_is_logged_and_not_exposed(capsys):
    async def scenario():
        async with served() as client:
            client.broker.failure = ValueError("the secret is 1234")
            with pytest.raises(ControlError, match="see the server's log") as rejected:
                await client.rebalance()
            assert rejected.value.status == "INTERNAL"

    run(scenario)
    logged = capsys.readouterr().out
    assert "control request failed" in logged
    assert "the secret is 1234" in logged


def test_invalid_stream_is_rejected():
    async def scenario():
        async def invalid():
            yield MetricsSample(timestamp_ms=1)

        async with served() as client:
            with pytest.raises(ControlError, match="INVALID_ARGUMENT"):
                await client.send_metrics(invalid())

    run(scenario)


def test_unknown_method_is_unimplemented():
    async def scenario():
        async with served() as client:
            call = client._channel.unary_unary("/kafscale.control.BrokerControl/Dance")
            with pytest.raises(grpc.aio.AioRpcError) as rejected:
                await call(b"")
            assert rejected.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(scenario)


def test_undecodable_request_is_rejected():
    async def scenario():
        async with served() as client:
            call = client._channel.unary_unary("/kafscale.control.BrokerControl/GetStatus")
            with pytest.raises(grpc.aio.AioRpcError):
                await call(b"\xff\xff\xff")
            await client.status()

    run(scenario)


def test_cancelled_watch_is_removed():
    async def scenario():
        async with served() as client:
            feed = client.server._feed
            async with aclosing(client.watch_assignments()) as events:
                await anext(events)
                assert len(feed._watchers) == 1
            while feed._watchers:
                await client.status()

    run(scenario)


def test_client_timeout():
    async def scenario():
        async with served() as client:
            client.broker.gate = asyncio.Event()
            with pytest.raises(UnreachableError, match="Deadline"):
                await client._call("GetStatus", b"", 0.05)
            client.broker.gate.set()
            await client.status()

    run(scenario)


@all_event_loops
def test_close_completes_requests_and_ends_watches(loop):
    async def scenario():
        broker = ScriptedBroker()
        async with served(broker) as client, aclosing(client.watch_assignments()) as events:
            await anext(events)
            broker.gate = asyncio.Event()
            calls = asyncio.ensure_future(client.status())
            await broker.called.wait()
            closing = asyncio.ensure_future(client.server.close())
            with pytest.raises(ControlError, match="the server is closing"):
                await anext(events)
            broker.gate.set()
            assert (await calls).broker_id == "3"
            await closing

    run(scenario, loop)


def test_close_does_not_wait_for_long():
    async def scenario():
        broker = ScriptedBroker()
        async with served(broker) as client:
            broker.gate = asyncio.Event()
            calls = asyncio.ensure_future(client.status())
            await broker.called.wait()
            async with asyncio.timeout(2):
                await client.server.close()
            with pytest.raises(UnreachableError):
                await calls

    run(scenario)


def test_closed_port_is_unreachable():
    async def scenario():
        async with served() as client:
            port = client.server.port
            await client.server.close()
        async with ControlClient(f"127.0.0.1:{port}") as client:
            with pytest.raises(
                UnreachableError, match=f"no broker responds .* at 127.0.0.1:{port}"
            ):
                await client.status()

    run(scenario)


def test_port_in_use_is_a_config_error():
    async def scenario():
        async with served() as client:
            other = ControlServer(ScriptedBroker())
            with pytest.raises(ConfigError, match=f"127.0.0.1:{client.server.port}"):
                await other.start("127.0.0.1", client.server.port)

    run(scenario)


def test_interceptor_authorizes_requests():
    class PasswordInterceptor(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, details):
            if ("password", "open") in details.invocation_metadata:
                return await continuation(details)

            async def refuse(_request, context):
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")

            return grpc.unary_unary_rpc_method_handler(refuse)

    async def scenario():
        server = ControlServer(ScriptedBroker(), interceptors=[PasswordInterceptor()])
        await server.start("127.0.0.1", 0)
        async with ControlClient(f"127.0.0.1:{server.port}") as client:
            with pytest.raises(ControlError, match="who are you"):
                await client.status()
            call = client._channel.unary_unary("/kafscale.control.BrokerControl/GetStatus")
            assert await call(b"", metadata=(("password", "open"),))
        await server.close()

    run(scenario)


def test_many_changes_arrive_in_order():
    async def scenario():
        async with served() as client, aclosing(client.watch_assignments()) as events:
            await anext(events)
            for epoch in range(8, 208):
                client.broker.assign(orders_0=PartitionOwner(3, epoch))
                await asyncio.sleep(0)
            received = [describe(await anext(events)) for _ in range(200)]
            assert received == [f"orders/0 assigned 3 @{epoch}" for epoch in range(8, 208)]

    run(scenario)


def test_methods_that_are_not_served_have_a_message():
    async def scenario():
        async def status(_request):
            return BrokerStatusResponse(broker_id="scripted")

        server = GrpcServer("operator", {"GetStatus": status})
        await server.start("127.0.0.1", 0)
        rejected = {}
        async with ControlClient(f"127.0.0.1:{server.port}") as client:
            assert (await client.status()).broker_id == "scripted"
            for call in (client.drain, client.flush, client.rebalance):
                with pytest.raises(ControlError) as error:
                    await call()
                rejected[call.__name__] = error.value.status, error.value.details
            with pytest.raises(ControlError) as error:
                await anext(client.watch_assignments())
            rejected["watch"] = error.value.status, error.value.details
        await server.close()
        return rejected

    async def check():
        assert await scenario() == {
            name: ("UNIMPLEMENTED", f"{method} is not served by the operator; ask a broker")
            for name, method in {
                "drain": "DrainPartitions",
                "flush": "TriggerFlush",
                "rebalance": "Rebalance",
                "watch": "WatchAssignments",
            }.items()
        }

    run(check)


def test_handlers_of_undeclared_methods_are_rejected():
    with pytest.raises(AssertionError, match="declared"):
        GrpcServer("operator", {"Dance": METHODS.get})


@all_event_loops
def test_client_that_is_closed_fails_its_calls_and_does_not_cancel_their_tasks(loop):
    async def scenario():
        async with served() as client:
            client.broker.gate = asyncio.Event()
            async with ControlClient(client.address) as closed:
                call = asyncio.create_task(closed.seal_tail(ORDERS_0))
                await client.broker.called.wait()
            with pytest.raises(UnreachableError, match="the client was closed"):
                await call
            with pytest.raises(UnreachableError, match="the client was closed"):
                await closed.seal_tail(ORDERS_0)
            client.broker.gate.set()

    run(scenario, loop)


def test_dead_connection_is_replaced_while_requests_wait():
    """A machine that is lost sends no FIN or RST; another one has its name soon."""

    async def scenario():
        async with served() as direct:
            link = Link(direct.server.port, Random(0))
            await link.listen()
            client = ControlClient(
                f"127.0.0.1:{link.port}", ping_after_seconds=0.2, ping_seconds_max=0.2
            )
            async with client:
                await client.status()
                await link.set(Fault(holds="everything"))
                with pytest.raises(UnreachableError) as unreachable:
                    await client.status()
                assert not unreachable.value.is_timeout, "pings noticed it before"
                await link.set(HEALTHY)
                assert (await client.status()).broker_id == "3"
            await link.close()

    asyncio.run(scenario())  # The link ends connections by cancelling, which the loop logs.
