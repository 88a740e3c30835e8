"""A shared broker with authentication and authorization, which tests must not change."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from services.acls import Acls, acl_binding
from services.secured_broker import ADMIN, SecuredBroker, password_of

USERS = ("alice", "bob", "carol")
USERS_WITHOUT_ACLS = ("producer", "consumer", "outsider", "operator")
"""Users without ACLs, except those that a test adds."""
TOKEN_BEGINS = "eyJ"  # noqa: S105 - no password.
"""Every JWT starts with this: the Base64 of a JSON object's start."""


@pytest.fixture(scope="session")
def _shared_secured(tmp_path_factory) -> Iterator[SecuredBroker]:
    with SecuredBroker(
        tmp_path_factory.mktemp("secured"), users=(*USERS, *USERS_WITHOUT_ACLS)
    ) as running:
        running.add_scram_users(ADMIN, *USERS)
        # Users own the names that start with theirs, so access to such a name proves the identity.
        acls = Acls(AdminClient(running.plain(ADMIN).librdkafka()))
        for user in USERS:
            acls.add(
                acl_binding(f"User:{user}", "ALL", topic=f"{user}-", prefixed=True),
                acl_binding(f"User:{user}", "ALL", group=f"{user}-", prefixed=True),
            )
        yield running


@pytest.fixture
def secured(_shared_secured) -> Iterator[SecuredBroker]:
    """The broker that all tests of this process share; checks that its log contains no secrets."""
    logged_bytes = _shared_secured.log.stat().st_size
    yield _shared_secured
    logged = _shared_secured.logged(logged_bytes)
    print(logged)  # noqa: T201 - shown where the test failed.
    assert password_of("") not in logged
    assert TOKEN_BEGINS not in logged


@pytest.fixture
def own_topic() -> str:
    """A unique topic name that belongs to alice."""
    return f"alice-{uuid4()}"
