"""AlterUserScramCredentials: credentials are set and deleted."""

import hashlib

import pytest
from structlog.testing import capture_logs

from kafscale.metadata.access.model import Operation, ScramMechanism
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    CredentialToDelete,
    CredentialToSet,
)
from kafscale.security.sasl import scram
from unit.broker.handlers.acl_config import ACLS_ENABLED, ALICE, ROOT, on_cluster
from unit.broker.in_memory_broker import ADMIN_DISABLED, CLIENT, CONFIG, run_with_broker

SHA_256, SHA_512 = ScramMechanism
SALT = b"a-salt"
SALTED = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)
ALICES = CredentialToSet("alice", SHA_256, 4096, SALT, SALTED)
NOTHING = CredentialToDelete("alice", SHA_256)


def upsertion(**changes):
    fields = {name: getattr(ALICES, name) for name in ALICES.__struct_fields__}
    return CredentialToSet(**fields | changes)


async def alter(broker, *changes, client=CLIENT):
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, CredentialToDelete)],
        upsertions=[each for each in changes if isinstance(each, CredentialToSet)],
    )
    response = await broker.ask(ALTER_USER_SCRAM_CREDENTIALS, request, client=client)
    responses = {user.name: user for user in response.users}
    assert len(responses) == len(response.users)
    return responses


def codes(answers):
    return {name: ErrorCode(response.error_code) for name, response in answers.items()}


@pytest.mark.parametrize("config", [CONFIG, ACLS_ENABLED], ids=["open", "guarded"])
def test_credential_is_set_replaced_and_deleted(config):
    async def body(broker):
        rules = broker.services.access_store
        response = (await alter(broker, ALICES, client=ROOT))["alice"]
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        kept = rules.credential("alice", SHA_256)
        assert kept == scram.credential("alice", SHA_256, SALT, 4096, password="secret")  # noqa: S106
        assert SALTED not in {kept.stored_key, kept.server_key}

        assert codes(await alter(broker, upsertion(iterations=8192), client=ROOT)) == {"alice": 0}
        assert rules.credential("alice", SHA_256).iterations == 8192

        assert codes(await alter(broker, NOTHING, client=ROOT)) == {"alice": 0}
        assert rules.credential("alice", SHA_256) is None

    run_with_broker(body, config=config)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (upsertion(user=""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(user="x" * 5000), ErrorCode.UNACCEPTABLE_CREDENTIAL, "more than 4096"),
        (upsertion(salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt must have 1 to 1024"),
        (
            upsertion(salt=bytes(2000)),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Salt must have 1 to 1024",
        ),
        (upsertion(salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "must not be empty"),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (CredentialToDelete("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "must not be empty"),
        (CredentialToDelete("alice", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM"),
        (NOTHING, ErrorCode.RESOURCE_NOT_FOUND, "does not exist"),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_invalid_credential_fails_on_its_own(change, code, message):
    async def body(broker):
        responses = await alter(broker, change, upsertion(user="bob"))
        assert codes(responses) == {change.user: code, "bob": ErrorCode.NONE}
        assert message in responses[change.user].error_message
        assert [each.user for each in broker.services.access_store.credentials] == ["bob"]

    run_with_broker(body)


@pytest.mark.parametrize(
    "changes",
    [
        (ALICES, ALICES),
        (NOTHING, NOTHING),
        (NOTHING, ALICES),
        (ALICES, upsertion(mechanism=SHA_512)),
        (ALICES, upsertion(mechanism=9)),
    ],
)
def test_duplicate_user_is_refused(changes):
    async def body(broker):
        responses = await alter(broker, *changes, upsertion(user="bob"))
        assert codes(responses) == {"alice": ErrorCode.DUPLICATE_RESOURCE, "bob": ErrorCode.NONE}
        assert broker.services.access_store.credential("alice", SHA_256) is None

    run_with_broker(body)


def test_altering_users_requires_alter_on_the_cluster():
    async def body(broker):
        changes = (NOTHING, ALICES, upsertion(user="bob"))
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert codes(await alter(broker, *changes, client=ALICE)) == dict.fromkeys(
            ("alice", "bob"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        assert not broker.services.access_store.credentials
        await broker.services.access_store.add_acls([on_cluster(Operation.ALTER)])
        assert codes(await alter(broker, ALICES, client=ALICE)) == {"alice": ErrorCode.NONE}

    run_with_broker(body, config=ACLS_ENABLED)


def test_alter_users_is_refused_if_admin_is_disabled():
    async def body(broker):
        assert codes(await alter(broker, ALICES)) == {"alice": ErrorCode.POLICY_VIOLATION}
        assert not broker.services.access_store.credentials

    run_with_broker(body, config=ADMIN_DISABLED)


def test_credential_changes_are_audited_without_secrets():
    async def body(broker):
        with capture_logs() as events:
            await alter(broker, ALICES)
            await alter(broker, NOTHING)
        changes = [event for event in events if event["event"] == "changed"]
        assert [event["change"] for event in changes] == [
            "scram credential set",
            "scram credential deleted",
        ]
        assert {event["user"] for event in changes} == {"alice"}
        assert {event["mechanism"] for event in changes} == {"SCRAM-SHA-256"}
        assert SALT.decode() not in str(events)
        assert repr(SALTED)[2:-1] not in str(events)

    run_with_broker(body)
