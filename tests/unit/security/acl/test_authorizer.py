"""`Authorizer`: decisions for principals, with ACLs in a store."""

from contextlib import asynccontextmanager

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.config.sections.security import Authorization
from kafscale.metadata.access import keys
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.store.base import Delete, Put
from kafscale.security.acl import authorizer
from kafscale.security.acl.authorizer import Authorizer
from kafscale.security.principal import ANONYMOUS, Principal
from unit.security.acls import acl, deny

READ, WRITE, TOPIC = Operation.READ, Operation.WRITE, ResourceType.TOPIC
ALICE = Principal("User:alice")
ROOT = Principal("User:root")
ANALYST = Principal("User:carol", groups=("Group:analysts",))
HOST = "10.0.0.1"


class AuthorizerSetup:
    """An authorizer, and its access store."""

    def __init__(self, store, access_store, settings):
        self.store = store
        self.access_store = access_store
        self.authorizer = Authorizer(settings, access_store)

    def allows(self, identity=ALICE, operation=READ, name="orders"):
        return self.authorizer.allows(identity, HOST, operation, TOPIC, name)

    def allows_any(self, identity=ALICE, operation=READ):
        return self.authorizer.allows_any(identity, HOST, operation, TOPIC)


@asynccontextmanager
async def opened(*acls, **settings):
    store = MemoryStore(virtual_time.clock_ms)
    access_store = AccessStore(store)
    await access_store.start()
    await access_store.add_acls(acls)
    yield AuthorizerSetup(store, access_store, Authorization(enabled=True, **settings))
    await access_store.close()


@pytest.fixture
def hold():
    """Runs the body of a test with an authorizer."""

    def run(body, *acls, **settings):
        async def scenario(_random):
            async with opened(*acls, **settings) as setup:
                await body(setup)

        virtual_time.run(scenario, seed=0)

    return run


def test_existing_acls_apply(hold):
    async def body(setup):
        assert setup.allows()
        assert setup.allows_any()
        assert not setup.allows(operation=WRITE)
        assert not setup.allows_any(operation=WRITE)
        assert not setup.allows(ANONYMOUS)
        assert not setup.allows_any(ANONYMOUS)

    hold(body, acl())


def test_acl_change_invalidates_cached_decisions(hold):
    async def body(setup):
        assert not setup.allows()
        assert not setup.allows_any()
        await setup.access_store.add_acls([acl()])
        assert setup.allows()
        assert setup.allows_any()
        await setup.access_store.add_acls([deny(name="*")])
        assert not setup.allows()
        assert not setup.allows_any()
        await setup.access_store.remove_acls([deny(name="*")])
        assert setup.allows()

    hold(body)


def test_super_users_may_do_everything(hold):
    async def body(setup):
        assert setup.allows(ROOT)
        assert setup.allows_any(ROOT)
        assert setup.allows(ANALYST)
        assert not setup.allows(ALICE)

    hold(body, deny(Operation.ALL, "*", "User:*"), super_users=("User:root", "Group:analysts"))


def test_acls_of_groups_apply_to_their_users(hold):
    async def body(setup):
        assert setup.allows(ANALYST)
        assert not setup.allows(Principal("User:carol"))

    hold(body, acl(principal="Group:analysts"))


def test_resources_without_acls_are_allowed_if_configured(hold):
    async def body(setup):
        assert setup.allows(ANONYMOUS, name="payments")
        assert not setup.allows(ANONYMOUS)
        assert setup.allows_any(ANONYMOUS)

    hold(body, acl(), allow_everyone_if_no_acl_found=True)


@pytest.mark.parametrize("is_repaired", [True, False])
def test_damaged_acl_denies_all_but_super_users(hold, is_repaired):
    key = keys.acl(deny(principal="User:bob"))

    async def body(setup):
        assert setup.allows()
        assert setup.allows_any()
        await setup.store.commit([], [Put(key, b"\xff")])
        await setup.access_store.add_acls(
            [acl(principal="User:dave")]
        )  # Seen later than the damage.
        for identity in (ALICE, ANONYMOUS):
            assert not setup.allows(identity)
            assert not setup.allows(identity, name="payments")
            assert not setup.allows_any(identity)
        assert setup.allows(ROOT)
        assert setup.allows_any(ROOT)
        if is_repaired:
            await setup.access_store.add_acls([deny(principal="User:bob")])
        else:
            await setup.store.commit([], [Delete(key)])
            await setup.access_store.add_acls([acl(principal="User:erin")])
        assert setup.allows()
        assert setup.allows_any()

    hold(body, acl(), super_users=("User:root",), allow_everyone_if_no_acl_found=True)


def test_decision_cache_is_bounded(hold):
    async def body(setup):
        for number in range(authorizer.DECISIONS_COUNT_MAX + 10):
            assert not setup.allows(name=f"topic-{number}")
        assert not setup.allows(name="x" * 1_000_000)
        assert setup.allows()
        assert 0 < len(setup.authorizer._decisions) < 20

    hold(body, acl())
