"""Who is asked next, and what is never sent twice, with members that do as they are told."""

import asyncio

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.client import Client
from kafscale.metadata.store.etcd.errors import ErrorKind
from kafscale.metadata.store.etcd.members import Members
from kafscale.metadata.store.etcd.methods import RANGE, TXN
from kafscale.metadata.store.etcd.session import Session
from kafscale.testing import virtual_time
from unit.metadata.store.etcd.scripted import LATENCY_S, SILENT, ScriptedMember

REQUEST_MS = 8000


def play(body):
    """Run an async function in simulated time."""

    async def scenario(_random):
        return await body()

    return virtual_time.run(scenario, seed=0)


def client_of(*members, username=""):
    return Client(Members(members), Session(username, "secret"), REQUEST_MS)


async def ask(client):
    return await client.call_idempotent(RANGE, rpc.RangeRequest(key=b"/"))


async def tell(client):
    return await client.call_once(TXN, rpc.TxnRequest())


def now():
    return asyncio.get_running_loop().time()


def test_the_member_that_answers_is_asked_again():
    async def body():
        members = [ScriptedMember(name) for name in "abc"]
        client = client_of(*members)
        for _ in range(3):
            await ask(client)
            await tell(client)
        assert [len(member.asked) for member in members] == [6, 0, 0]

    play(body)


@pytest.mark.parametrize("send", [ask, tell])
def test_what_surely_was_not_done_is_sent_to_another(send):
    async def body():
        first, second = ScriptedMember("a", ErrorKind.NOT_APPLIED), ScriptedMember("b")
        client = client_of(first, second)
        await send(client)
        assert (len(first.asked), len(second.asked)) == (1, 1)
        assert first.left == 1
        # It stays with the one that is good.
        await send(client)
        assert (len(first.asked), len(second.asked)) == (1, 2)

    play(body)


def test_a_write_in_doubt_is_never_sent_again_and_a_read_is():
    async def body():
        first, second = ScriptedMember("a", ErrorKind.UNKNOWN_OUTCOME), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError, match="etcd at a: unknown outcome"):
            await tell(client_of(first, second))
        assert second.asked == []
        assert first.left == 1
        first, second = ScriptedMember("a", ErrorKind.UNKNOWN_OUTCOME), ScriptedMember("b")
        await ask(client_of(first, second))
        assert len(second.asked) == 1

    play(body)


def test_a_write_has_the_whole_time_and_a_read_a_share_of_it_at_each_member():
    async def body():
        first, second = ScriptedMember("a", SILENT), ScriptedMember("b")
        await ask(client_of(first, second))
        assert now() == pytest.approx(2, abs=0.01)
        first, second = ScriptedMember("a", SILENT), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError, match="no answer in time"):
            await tell(client_of(first, second))
        assert now() == pytest.approx(10, abs=0.01)

    play(body)


def test_nobody_waits_longer_than_a_request_may_take():
    async def body():
        members = [ScriptedMember(name, *[SILENT] * 9) for name in "abc"]
        with pytest.raises(StoreUnavailableError):
            await ask(client_of(*members))
        assert now() == pytest.approx(8, abs=0.5)

    play(body)


@pytest.mark.parametrize("send", [ask, tell])
def test_members_without_a_leader_are_asked_until_they_have_one(send):
    """All answer at once that they cannot: there is a pause in between, and time in the end."""

    async def body():
        members = [ScriptedMember(name, *[ErrorKind.NOT_APPLIED] * 5) for name in "abc"]
        await send(client_of(*members))
        assert 1 < now() < 2
        members = [ScriptedMember(name, *[ErrorKind.NOT_APPLIED] * 999) for name in "abc"]
        with pytest.raises(StoreUnavailableError, match="not applied"):
            await send(client_of(*members))
        assert sum(len(member.asked) for member in members) < 100

    play(body)


@pytest.mark.parametrize("send", [ask, tell])
@pytest.mark.parametrize(
    "verdict", [ErrorKind.REJECTED, ErrorKind.LEASE_NOT_FOUND, ErrorKind.COMPACTED]
)
def test_an_answer_is_an_answer(send, verdict):
    async def body():
        first, second = ScriptedMember("a", verdict), ScriptedMember("b")
        with pytest.raises(StoreUnavailableError):
            await send(client_of(first, second))
        assert second.asked == []
        assert first.left == 0

    play(body)


@pytest.mark.parametrize("send", [ask, tell])
def test_a_request_waits_for_the_first_member_to_be_connected(send):
    async def body():
        members = [ScriptedMember(name, connected=False) for name in "abc"]
        client = client_of(*members)
        requests = [asyncio.ensure_future(send(client)) for _ in range(3)]
        await asyncio.sleep(1)
        members[1].come_up()
        await asyncio.gather(*requests)
        assert [len(member.asked) for member in members] == [0, 3, 0]
        await client.members.close()

    play(body)


def test_others_have_a_chance_to_connect_before_a_member_that_failed_is_asked_again():
    async def body():
        silent, idle = ScriptedMember("a", SILENT), ScriptedMember("b", connected=False)
        client = client_of(silent, idle)
        asyncio.get_running_loop().call_later(2.1, idle.come_up)
        await ask(client)
        assert (len(silent.asked), len(idle.asked)) == (1, 1)
        assert client.members.preferred is idle
        await client.members.close()

    play(body)


def test_a_member_that_failed_is_asked_again_if_there_is_no_other():
    async def body():
        failed, gone = (
            ScriptedMember("a", ErrorKind.NOT_APPLIED),
            ScriptedMember("b", connected=False),
        )
        client = client_of(failed, gone)
        for _ in range(2):
            await tell(client)
        assert len(failed.asked) == 3
        assert now() < 0.5
        await client.members.close()

    play(body)


def test_a_request_gives_up_when_no_member_can_be_connected():
    async def body():
        client = client_of(*(ScriptedMember(name, connected=False) for name in "abc"))
        with pytest.raises(StoreUnavailableError, match="a, b, c"):
            await tell(client)
        assert now() == pytest.approx(8)
        waiting = asyncio.ensure_future(ask(client))
        await asyncio.sleep(1)
        await client.members.close()
        with pytest.raises(StoreUnavailableError, match="closed"):
            await waiting

    play(body)


@pytest.mark.parametrize("send", [ask, tell])
def test_a_token_that_is_not_known_is_renewed_once_for_all_who_come(send):
    async def body():
        member = ScriptedMember("a", ErrorKind.INVALID_TOKEN, ErrorKind.INVALID_TOKEN)
        client = client_of(member, username="user")
        await asyncio.gather(send(client), send(client))
        signed_in = [index for index, (who, _) in enumerate(member.asked) if who == "sign in"]
        assert len(signed_in) == 2
        assert [who for who, _ in member.asked[-2:]] == [f"token {signed_in[-1]}"] * 2
        await send(client)
        assert len([who for who, _ in member.asked if who == "sign in"]) == 2

    play(body)


def test_a_token_that_is_never_known_is_given_up():
    async def body():
        member = ScriptedMember("a", *[ErrorKind.INVALID_TOKEN] * 9)
        with pytest.raises(StoreUnavailableError, match="invalid token"):
            await ask(client_of(member, username="user"))
        assert len(member.asked) == 6

    play(body)


def test_a_check_prefers_the_first_to_answer_and_tells_why_there_is_none():
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

    play(body)
