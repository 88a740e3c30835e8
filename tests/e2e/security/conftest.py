"""A broker that does not take everybody, and that no test may harm."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from services.rules import Rules, rule
from services.secured_broker import ADMIN, SecuredBroker, password_of

USERS = ("alice", "bob", "carol")
PROFESSIONS = ("producer", "consumer", "outsider", "operator")
"""Users who have nothing but what tests give them."""
TOKEN_BEGINS = "eyJ"  # noqa: S105 - no password.
"""All of them do: it is how a JSON object looks in Base64."""


@pytest.fixture(scope="session")
def _shared_secured(tmp_path_factory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured"), users=(*USERS, *PROFESSIONS)) as running:
        running.add_scram_users(ADMIN, *USERS)
        # Everybody has what begins with their names, so that getting at it shows who one is.
        rules = Rules(AdminClient(running.plain(ADMIN).librdkafka()))
        for user in USERS:
            rules.add(
                rule(f"User:{user}", "ALL", topic=f"{user}-", prefixed=True),
                rule(f"User:{user}", "ALL", group=f"{user}-", prefixed=True),
            )
        yield running


@pytest.fixture
def secured(_shared_secured) -> Iterator[SecuredBroker]:
    """The broker that all tests of this process share; what it logs meanwhile holds no secret."""
    logged_bytes = _shared_secured.log.stat().st_size
    yield _shared_secured
    logged = _shared_secured.logged(logged_bytes)
    print(logged)  # noqa: T201 - shown where the test failed.
    assert password_of("") not in logged
    assert TOKEN_BEGINS not in logged


@pytest.fixture
def own_topic() -> str:
    """A topic of alice's that no other test uses."""
    return f"alice-{uuid4()}"
