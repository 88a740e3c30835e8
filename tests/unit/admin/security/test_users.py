"""Users who log in with a password, as the handlers of a broker keep them."""

from random import Random

import pytest

from kafscale.admin.security import users as user_admin
from kafscale.admin.security.users import Password
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.sasl import scram
from unit.cli.served_client import GUARDED, OPEN, on_broker

BOTH = list(ScramMechanism)


def new(text, iterations=4096):
    return Password(text=text, iterations=iterations, random=Random(1))


def knows(client, user, mechanism, password):
    """Whether the broker would take this for the password of the user."""
    kept = client.broker.services.rules.credential(user, mechanism)
    return kept is not None and kept == scram.credential(
        user, mechanism, kept.salt, kept.iterations, password=password
    )


def test_a_user_is_created_listed_changed_and_deleted():
    async def story(client):
        assert await user_admin.list_all(client) == []
        await user_admin.create(client, "bob", new("b"), [ScramMechanism.SHA_256])
        await user_admin.create(client, "alice", new("first", 8192), BOTH)
        assert await user_admin.list_all(client) == [
            {
                "user": "alice",
                "credentials": [
                    {"mechanism": "SCRAM-SHA-256", "iterations": 8192},
                    {"mechanism": "SCRAM-SHA-512", "iterations": 8192},
                ],
            },
            {"user": "bob", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 4096}]},
        ]
        assert all(knows(client, "alice", mechanism, "first") for mechanism in BOTH)

        assert await user_admin.change_password(client, "alice", new("second"), []) == BOTH
        assert all(knows(client, "alice", mechanism, "second") for mechanism in BOTH)
        only = [ScramMechanism.SHA_512]
        assert await user_admin.change_password(client, "alice", new("third"), only) == only
        assert knows(client, "alice", ScramMechanism.SHA_256, "second")
        assert knows(client, "alice", ScramMechanism.SHA_512, "third")

        deleted = await user_admin.delete(client, ["alice", "bob"], [], missing_ok=False)
        assert deleted == (["alice", "bob"], [])
        assert await user_admin.list_all(client) == []

    on_broker(story, OPEN)


def test_two_credentials_of_a_user_have_salts_of_their_own():
    async def story(client):
        await user_admin.create(client, "alice", new("secret"), BOTH)
        salts = {credential.salt for credential in client.broker.services.rules.credentials}
        assert len(salts) == 2

    on_broker(story)


def test_who_exists_is_not_created_and_who_does_not_gets_no_password():
    async def story(client):
        await user_admin.create(client, "alice", new("first"), BOTH)
        with pytest.raises(KafscaleError, match="kafscale user password alice"):
            await user_admin.create(client, "alice", new("second"), BOTH)
        assert knows(client, "alice", BOTH[0], "first")
        with pytest.raises(KafscaleError, match="kafscale user create bob"):
            await user_admin.change_password(client, "bob", new("x"), BOTH)

    on_broker(story)


def test_of_several_those_who_exist_are_deleted():
    async def story(client):
        await user_admin.create(client, "alice", new("first"), [ScramMechanism.SHA_256])
        only = [ScramMechanism.SHA_512]
        deleted, problems = await user_admin.delete(client, ["alice"], only, missing_ok=False)
        assert deleted == []
        assert problems == ["user alice cannot log in by SCRAM-SHA-512; see: kafscale user list"]
        deleted, problems = await user_admin.delete(client, ["x", "alice"], [], missing_ok=False)
        assert deleted == ["alice"]
        assert len(problems) == 1
        assert await user_admin.delete(client, ["x"], [], missing_ok=True) == ([], [])

    on_broker(story)


def test_who_may_not_is_told_who_may():
    async def story(client):
        with pytest.raises(KafscaleError, match=r"authorization\.superUsers"):
            await user_admin.list_all(client)

    on_broker(story, GUARDED)


def test_a_password_is_not_shown():
    assert "hush" not in repr(new("hush"))
