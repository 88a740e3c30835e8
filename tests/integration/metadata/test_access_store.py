"""ACLs, credentials and quotas in every metadata store."""

import asyncio

from msgspec.structs import replace

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

READS = Acl(
    ResourceType.TOPIC,
    PatternType.PREFIXED,
    "orders/é",
    "User:CN=alice,O=a/b",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
ACLS = [replace(READS, resource_name=f"topic-{number}") for number in range(300)]
SHA_256 = ScramMechanism.SHA_256
CREDENTIAL = ScramCredential("al/ice", SHA_256, b"salt", 4096, b"stored", b"server")
ALICE = QuotaEntity(user="al/ice", client_id="")


def test_records_of_one_broker_are_visible_to_another(run_with_store):
    async def body(store):
        one = AccessStore(store)
        await one.start()
        await one.add_acls([READS, *ACLS])
        await one.set_credential(CREDENTIAL)
        await one.alter_quota(ALICE, {"producer_byte_rate": 1024.5})
        other = AccessStore(store)
        await other.start()
        for each in (one, other):
            assert set(each.acls) == {READS, *ACLS}
            assert list(each.credentials) == [CREDENTIAL]
            assert each.quotas == {ALICE: {"producer_byte_rate": 1024.5}}
        await one.close()
        await other.close()

    run_with_store(body)


def test_removed_records_are_gone_when_the_call_returns(run_with_store):
    async def body(store):
        access = AccessStore(store)
        await access.start()
        await access.add_acls([READS, *ACLS])
        await access.remove_acls(ACLS)
        assert list(access.acls) == [READS]
        await access.remove_acls(ACLS)
        await access.set_credential(CREDENTIAL)
        assert await access.remove_credential("al/ice", SHA_256)
        assert not await access.remove_credential("al/ice", SHA_256)
        await access.alter_quota(ALICE, {"producer_byte_rate": 1.0})
        await access.alter_quota(ALICE, {"producer_byte_rate": None})
        assert (len(access.credentials), len(access.quotas)) == (0, 0)
        await access.close()

    run_with_store(body)


def test_concurrent_quota_changes_are_all_kept(run_with_store):
    async def body(store):
        stores = [AccessStore(store) for _ in range(3)]
        for each in stores:
            await each.start()
        await asyncio.gather(
            *(each.alter_quota(ALICE, {f"limit-{n}": 1.0}) for n, each in enumerate(stores))
        )
        fresh = AccessStore(store)
        await fresh.start()
        assert fresh.quotas == {ALICE: {f"limit-{n}": 1.0 for n in range(3)}}
        for each in (*stores, fresh):
            await each.close()

    run_with_store(body)
