"""`AccessStore`: ACLs, credentials and quotas as brokers see and change them."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.access import keys
from kafscale.metadata.access.model import (
    Acl,
    Operation,
    PatternType,
    Permission,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramMechanism,
)
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.store.base import Delete, Put
from unit.metadata.interruptible_store import InterruptibleStore

READS = Acl(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
WRITES = replace(READS, operation=Operation.WRITE)
SHA_256, SHA_512 = ScramMechanism
CREDENTIAL = ScramCredential("alice", SHA_256, b"salt", 4096, b"stored", b"server")
ALICE = QuotaEntity(user="alice")


@asynccontextmanager
async def brokers(store, count=1):
    created = [AccessStore(store, timeout_ms=2_000) for _ in range(count)]
    for each in created:
        await each.start()
    yield created if count > 1 else created[0]
    for each in created:
        await each.close()


def test_added_acls_are_visible_and_survive_a_restart(run_with_store):
    async def body(store):
        async with brokers(store) as access:
            assert access.connected
            changes = []
            access.subscribe_acls(lambda *change: changes.append(change))
            await access.add_acls([READS, WRITES, READS])
            assert set(access.acls) == {READS, WRITES}
            assert access.has(READS)
            assert sorted(changes) == [(None, READS), (None, WRITES)]
            await access.add_acls([READS])
            assert len(changes) == 2
        async with brokers(store) as access:
            assert set(access.acls) == {READS, WRITES}

    run_with_store(body)


def test_removed_acls_are_gone_when_the_call_returns(run_with_store):
    async def body(store):
        async with brokers(store) as access:
            await access.add_acls([READS, WRITES])
            changes = []
            access.subscribe_acls(lambda *change: changes.append(change))
            await access.remove_acls([READS])
            assert list(access.acls) == [WRITES]
            assert not access.has(READS)
            assert changes == [(READS, None)]
            await access.remove_acls([READS])  # Nothing is there to be waited for.
            await access.remove_acls([])
            assert len(changes) == 1

    run_with_store(body)


def test_many_acls_are_added_in_several_commits(run_with_store):
    acls = [replace(READS, resource_name=f"topic-{number}") for number in range(300)]
    large = [replace(READS, principal=f"User:{number}" + "x" * 400_000) for number in range(4)]

    async def body(store):
        async with brokers(store) as access:
            await access.add_acls(acls)
            assert len(access.acls) == 300
            await access.remove_acls(acls[1:])
            assert list(access.acls) == acls[:1]
            await access.add_acls(large)
            assert len(access.acls) == 5

    run_with_store(body)


def test_changes_of_one_broker_are_visible_to_others(run_with_store):
    async def body(store):
        async with brokers(store, 2) as (one, other):
            await asyncio.gather(one.add_acls([READS]), other.add_acls([WRITES]))
            await one.set_credential(CREDENTIAL)
            await one.alter_quota(ALICE, {"producer_byte_rate": 1024.0})
            await asyncio.sleep(0.1)
            for each in (one, other):
                assert set(each.acls) == {READS, WRITES}
                assert each.credential("alice", SHA_256) == CREDENTIAL
                assert each.quotas == {ALICE: {"producer_byte_rate": 1024.0}}

    run_with_store(body)


def test_credential_is_replaced_and_removed(run_with_store):
    other = replace(CREDENTIAL, mechanism=SHA_512)
    newer = replace(CREDENTIAL, iterations=8192)

    async def body(store):
        async with brokers(store) as access:
            assert access.credential("alice", SHA_256) is None
            await access.set_credential(CREDENTIAL)
            await access.set_credential(other)
            await access.set_credential(newer)
            assert access.credential("alice", SHA_256) == newer
            assert list(access.credentials) == [newer, other]
            assert await access.remove_credential("alice", SHA_256)
            assert access.credential("alice", SHA_256) is None
            assert not await access.remove_credential("alice", SHA_256)
            assert list(access.credentials) == [other]

    run_with_store(body)


def test_quota_limits_are_set_and_removed(run_with_store):
    async def body(store):
        async with brokers(store) as access:
            changes = []
            access.subscribe_quotas(changes.append)
            await access.alter_quota(ALICE, {"producer_byte_rate": 10.0, "request_percentage": 5.0})
            await access.alter_quota(ALICE, {"producer_byte_rate": 20.0, "consumer_byte_rate": 1.5})
            assert access.quotas[ALICE] == {
                "producer_byte_rate": 20.0,
                "request_percentage": 5.0,
                "consumer_byte_rate": 1.5,
            }
            await access.alter_quota(ALICE, {"producer_byte_rate": 20.0, "unheard_of": None})
            assert changes == [ALICE, ALICE]
            await access.alter_quota(ALICE, dict.fromkeys(access.quotas[ALICE]))
            assert access.quotas == {}
            assert changes == [ALICE] * 3
            await access.alter_quota(ALICE, {"producer_byte_rate": None})
            assert (await store.range(keys.QUOTAS)).entries == ()

    run_with_store(body)


def test_concurrent_quota_changes_are_all_kept(run_with_store):
    async def body(store):
        async with brokers(store, 4) as created:
            await asyncio.gather(
                *(each.alter_quota(ALICE, {f"limit-{n}": 1.0}) for n, each in enumerate(created))
            )
        async with brokers(store) as access:
            assert access.quotas == {ALICE: {f"limit-{n}": 1.0 for n in range(4)}}

    run_with_store(body)


def test_damaged_acl_is_listed_until_it_is_valid(run_with_store):
    key = keys.acl(READS)

    async def body(store):
        async with brokers(store) as access:
            changes = []
            access.subscribe_acls(lambda *change: changes.append(change))
            await access.add_acls([READS])
            await store.commit([], [Put(key, b"\xff"), Put(f"{keys.ACLS}strange", b"")])
            await asyncio.sleep(0.1)
            assert access.damaged == {key, f"{keys.ACLS}strange"}
            assert list(access.acls) == []
            await access.add_acls([READS])
            await store.commit([], [Delete(f"{keys.ACLS}strange")])
            await asyncio.sleep(0.1)
            assert not access.damaged
            assert changes == [(None, READS), (READS, None), (None, READS)]

    run_with_store(body)


def test_acl_that_fails_a_listener_is_damaged(run_with_store):
    def broken(_before, _after):
        raise ValueError("no")

    async def body(store):
        async with brokers(store) as access:
            changes = []
            access.subscribe_acls(broken)
            access.subscribe_acls(lambda *change: changes.append(change))
            await access.add_acls([READS])
            assert access.damaged == {keys.acl(READS)}
            assert changes == [(None, READS)]
            assert access.connected

    run_with_store(body)


def test_damaged_credentials_and_quotas_are_absent(run_with_store):
    quota, credential = keys.quota(ALICE), keys.credential("alice", SHA_256)

    async def body(store):
        async with brokers(store) as access:
            changes = []
            access.subscribe_quotas(changes.append)
            access.subscribe_quotas(changes.pop)  # It fails, for there is no such index.
            await access.set_credential(CREDENTIAL)
            await access.alter_quota(ALICE, {"producer_byte_rate": 10.0})
            await store.commit([], [Put(credential, b"\xff"), Put(quota, b"\xff")])
            await store.commit([], [Put(f"{keys.ACCESS}unheard-of", b"\xff")])
            await asyncio.sleep(0.1)
            assert access.credential("alice", SHA_256) is None
            assert access.quotas == {}
            assert not access.damaged
            assert changes == [ALICE, ALICE]
            await access.alter_quota(ALICE, {"request_percentage": 1.0})
            assert access.quotas == {ALICE: {"request_percentage": 1.0}}

    run_with_store(body)


def test_change_that_does_not_become_visible_times_out(run_with_store):
    async def body(store):
        breakable = InterruptibleStore(store)
        async with brokers(breakable) as access:
            breakable.interrupted = True
            with pytest.raises(StoreUnavailableError, match="not all added within 2000 ms"):
                await access.add_acls([READS])
            assert not access.connected
            breakable.interrupted = False
            await asyncio.sleep(1)
            assert access.connected
            assert list(access.acls) == [READS]

    run_with_store(body)


def test_usual_iterations_follow_the_users(run_with_store):
    async def body(store):
        async with brokers(store) as access:
            assert access.usual_iterations(SHA_256) is None
            users = [
                replace(CREDENTIAL, user=user, iterations=iterations)
                for user, iterations in (("alice", 4096), ("bob", 8192), ("carol", 8192))
            ]
            for user in users:
                await access.set_credential(user)
            assert access.usual_iterations(SHA_256) == 8192
            assert access.usual_iterations(SHA_512) is None
            await access.set_credential(replace(users[1], iterations=4096))
            assert access.usual_iterations(SHA_256) == 4096
            for user in ("alice", "bob"):
                await access.remove_credential(user, SHA_256)
            assert access.usual_iterations(SHA_256) == 8192

    run_with_store(body)


def test_brokers_share_the_secret_for_unknown_users(run_with_store):
    async def body(store):
        async with brokers(store, 2) as (first, second):
            assert await first.decoy_secret(b"first") == b"first"
            assert await second.decoy_secret(b"second") == b"first"

    run_with_store(body)
