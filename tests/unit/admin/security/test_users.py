"""SCRAM users, against the handlers of a broker."""

from random import Random

import msgspec
import pytest

from kafscale.admin.security import users as user_admin
from kafscale.admin.security.users import Password
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.sasl import scram
from unit.cli.in_memory_client import AS_NORMAL_USER, WITHOUT_AUTHORIZATION, on_broker

BOTH = list(ScramMechanism)


def new(text, iterations=4096):
    return Password(text=text, iterations=iterations, random=Random(1))


def has_password(client, user, mechanism, password):
    """True if the broker would accept this password."""
    kept = client.broker.services.access_store.credential(user, mechanism)
    return kept is not None and kept == scram.credential(
        user, mechanism, kept.salt, kept.iterations, password=password
    )


def test_user_is_created_listed_changed_and_deleted():
    async def scenario(client):
        assert await user_admin.list_all(client) == []
        await user_admin.create(client, "bob", new("b"), [ScramMechanism.SHA_256])
        await user_admin.create(client, "alice", new("first", 8192), BOTH)
        assert msgspec.to_builtins(await user_admin.list_all(client)) == [
            {
                "user": "alice",
                "credentials": [
                    {"mechanism": "SCRAM-SHA-256", "iterations": 8192},
                    {"mechanism": "SCRAM-SHA-512", "iterations": 8192},
                ],
            },
            {"user": "bob", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 4096}]},
        ]
        assert all(has_password(client, "alice", mechanism, "first") for mechanism in BOTH)

        assert await user_admin.change_password(client, "alice", new("second"), []) == BOTH
        assert all(has_password(client, "alice", mechanism, "second") for mechanism in BOTH)
        only = [ScramMechanism.SHA_512]
        assert await user_admin.change_password(client, "alice", new("third"), only) == only
        assert has_password(client, "alice", ScramMechanism.SHA_256, "second")
        assert has_password(client, "alice", ScramMechanism.SHA_512, "third")

        deleted = await user_admin.delete(client, ["alice", "bob"], [], missing_ok=False)
        assert deleted == (["alice", "bob"], [])
        assert await user_admin.list_all(client) == []

    on_broker(scenario, WITHOUT_AUTHORIZATION)


def test_each_credential_has_its_own_salt():
    async def scenario(client):
        await user_admin.create(client, "alice", new("secret"), BOTH)
        salts = {credential.salt for credential in client.broker.services.access_store.credentials}
        assert len(salts) == 2

    on_broker(scenario)


def test_create_needs_a_new_user_and_change_an_existing_one():
    async def scenario(client):
        await user_admin.create(client, "alice", new("first"), BOTH)
        with pytest.raises(KafscaleError, match="kafscale user password alice"):
            await user_admin.create(client, "alice", new("second"), BOTH)
        assert has_password(client, "alice", BOTH[0], "first")
        with pytest.raises(KafscaleError, match="kafscale user create bob"):
            await user_admin.change_password(client, "bob", new("x"), BOTH)

    on_broker(scenario)


def test_delete_removes_existing_users_and_reports_others():
    async def scenario(client):
        await user_admin.create(client, "alice", new("first"), [ScramMechanism.SHA_256])
        only = [ScramMechanism.SHA_512]
        deleted, problems = await user_admin.delete(client, ["alice"], only, missing_ok=False)
        assert deleted == []
        assert problems == ["user alice cannot log in by SCRAM-SHA-512; see: kafscale user list"]
        deleted, problems = await user_admin.delete(client, ["x", "alice"], [], missing_ok=False)
        assert deleted == ["alice"]
        assert len(problems) == 1
        assert await user_admin.delete(client, ["x"], [], missing_ok=True) == ([], [])

    on_broker(scenario)


def test_authorization_error_says_who_is_allowed():
    async def scenario(client):
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await user_admin.list_all(client)

    on_broker(scenario, AS_NORMAL_USER)


def test_password_is_not_in_repr():
    assert "secret" not in repr(new("secret"))
