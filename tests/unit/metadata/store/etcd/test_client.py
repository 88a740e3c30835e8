"""`Client`: selection of members and retries, with scripted members."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.errors import StoreUnavailableError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.client import Client, Session
from kafscale.metadata.store.etcd.errors import ErrorKind
from kafscale.metadata.store.etcd.members import Members
from kafscale.metadata.store.etcd.protobuf import RANGE, TXN
from unit.metadata.store.etcd.scripted_member import LATENCY_S, SILENT, ScriptedMember

REQUEST_MS = 8000


def run(body):
    """Run an async function in simulated time."""

    async def scenario(_random):
        return await body()

    return virtual_time.run(scenario, seed=0)


def client_of(*members, username=""):
    return Client(Members(members), Session(username, lambda: "secret"), REQUEST_MS)


async def call_idempotent(client):
    return await client.call_idempotent(RANGE, rpc.RangeRequest(key=b"/"))


async def call_once(client):
    return await client.call_once(TXN, rpc.TxnRequest())


def now():
    return asyncio.get_running_loop().time()


def test_responding_member_is_used_again():
    async def body():
        members = [ScriptedMember(name) for name in "abc"]
        client = client_of(*members)
        for _ in range(3):
            await call_idempotent(client)
            await call_once(client)
        assert [len(member.requests) for member in members] == [6, 0, 0]

    run(body)


@pytest.mark.parametrize("send", [call_idempotent, call_once])
def test_request_that_was_not_applied_is_retried(send):
    async def body():
        first, second = ScriptedMember("a", ErrorKind.NOT_APPLIED), ScriptedMember("b")
        client = client_of(first, second)
        await send(client)
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert first.cancel_count == 1
        # It stays with the one that is good.
        await send(client)
        assert (len(first.requests), len(second.requests)) == (1, 2)

    run(body)


def test_write_with_unknown_outcome_is_not_retried_but_a_read_is():
    async def body():
        first, second = ScriptedMember("a", ErrorKind.UNKNOWN_OUTCOME), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError, match="etcd at a: unknown outcome"):
            await call_once(client_of(first, second))
        assert second.requests == []
        assert first.cancel_count == 1
        first, second = ScriptedMember("a", ErrorKind.UNKNOWN_OUTCOME), ScriptedMember("b")
        await call_idempotent(client_of(first, second))
        assert len(second.requests) == 1

    run(body)


def test_write_gets_the_whole_timeout_and_a_read_a_share_per_member():
    async def body():
        first, second = ScriptedMember("a", SILENT), ScriptedMember("b")
        await call_idempotent(client_of(first, second))
        assert now() == pytest.approx(2, abs=0.01)
        first, second = ScriptedMember("a", SILENT), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError, match="timed out"):
            await call_once(client_of(first, second))
        assert now() == pytest.approx(10, abs=0.01)

    run(body)


def test_no_call_exceeds_the_request_timeout():
    async def body():
        members = [ScriptedMember(name, *[SILENT] * 9) for name in "abc"]
        with pytest.raises(StoreUnavailableError):
            await call_idempotent(client_of(*members))
        assert now() == pytest.approx(8, abs=0.5)

    run(body)


@pytest.mark.parametrize("send", [call_idempotent, call_once])
def test_requests_are_retried_until_there_is_a_leader(send):
    """All members fail immediately: the client pauses between rounds and stops at the timeout."""

    async def body():
        members = [ScriptedMember(name, *[ErrorKind.NOT_APPLIED] * 5) for name in "abc"]
        await send(client_of(*members))
        assert 1 < now() < 2
        members = [ScriptedMember(name, *[ErrorKind.NOT_APPLIED] * 999) for name in "abc"]
        with pytest.raises(StoreUnavailableError, match="not applied"):
            await send(client_of(*members))
        assert sum(len(member.requests) for member in members) < 100

    run(body)


@pytest.mark.parametrize("send", [call_idempotent, call_once])
@pytest.mark.parametrize(
    "verdict", [ErrorKind.REJECTED, ErrorKind.LEASE_NOT_FOUND, ErrorKind.COMPACTED]
)
def test_definite_error_is_not_retried(send, verdict):
    async def body():
        first, second = ScriptedMember("a", verdict), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError):
            await send(client_of(first, second))
        assert second.requests == []
        assert first.cancel_count == 0

    run(body)


@pytest.mark.parametrize("send", [call_idempotent, call_once])
def test_request_waits_for_the_first_connection(send):
    async def body():
        members = [ScriptedMember(name, connected=False) for name in "abc"]
        client = client_of(*members)
        requests = [asyncio.ensure_future(send(client)) for _ in range(3)]
        await asyncio.sleep(1)
        members[1].come_up()
        await asyncio.gather(*requests)
        assert [len(member.requests) for member in members] == [0, 3, 0]
        await client.members.close()

    run(body)


def test_others_may_connect_before_a_failed_member_is_reused():
    async def body():
        silent, idle = ScriptedMember("a", SILENT), ScriptedMember("b", connected=False)
        client = client_of(silent, idle)
        asyncio.get_running_loop().call_later(2.1, idle.come_up)
        await call_idempotent(client)
        assert (len(silent.requests), len(idle.requests)) == (1, 1)
        assert client.members.preferred is idle
        await client.members.close()

    run(body)


def test_failed_member_is_reused_if_it_is_the_only_one():
    async def body():
        failed, gone = (
            ScriptedMember("a", ErrorKind.NOT_APPLIED),
            ScriptedMember("b", connected=False),
        )
        client = client_of(failed, gone)
        for _ in range(2):
            await call_once(client)
        assert len(failed.requests) == 3
        assert now() < 0.5
        await client.members.close()

    run(body)


def test_request_fails_without_a_connection():
    async def body():
        client = client_of(*(ScriptedMember(name, connected=False) for name in "abc"))
        with pytest.raises(StoreUnavailableError, match="a, b, c"):
            await call_once(client)
        assert now() == pytest.approx(8)
        waiting = asyncio.ensure_future(call_idempotent(client))
        await asyncio.sleep(1)
        await client.members.close()
        with pytest.raises(StoreUnavailableError, match="closed"):
            await waiting

    run(body)


@pytest.mark.parametrize("send", [call_idempotent, call_once])
def test_invalid_token_is_renewed_once_for_concurrent_requests(send):
    async def body():
        member = ScriptedMember("a", ErrorKind.INVALID_TOKEN, ErrorKind.INVALID_TOKEN)
        client = client_of(member, username="user")
        await asyncio.gather(send(client), send(client))
        signed_in = [
            index for index, (who, _) in enumerate(member.requests) if who == "authenticate"
        ]
        assert len(signed_in) == 2
        assert [who for who, _ in member.requests[-2:]] == [f"token {signed_in[-1]}"] * 2
        await send(client)
        assert len([who for who, _ in member.requests if who == "authenticate"]) == 2

    run(body)


def test_persistent_invalid_token_fails():
    async def body():
        member = ScriptedMember("a", *[ErrorKind.INVALID_TOKEN] * 9)
        with pytest.raises(StoreUnavailableError, match="invalid token"):
            await call_idempotent(client_of(member, username="user"))
        assert len(member.requests) == 6

    run(body)


def test_check_prefers_the_first_response_and_reports_failures():
    async def body():
        slow, refusing, good = (
            ScriptedMember("a", SILENT),
            ScriptedMember("b", ErrorKind.REJECTED),
            ScriptedMember("c"),
        )
        client = client_of(slow, refusing, good)
        await client.check(5)
        assert now() == LATENCY_S
        assert client.members.preferred is good
        client = client_of(ScriptedMember("a", SILENT), ScriptedMember("b", ErrorKind.REJECTED))
        with pytest.raises(StoreUnavailableError, match="etcd at b: rejected"):
            await client.check(5)

    run(body)
