"""AlterUserScramCredentials: users are given credentials, and lose them."""

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
from unit.broker.handlers.guarded import ALICE, GUARDED, ROOT, on_cluster
from unit.broker.handlers.serving import CLIENT, CONFIG, WITHOUT_ADMINISTRATION, serve

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
    answers = {user.name: user for user in response.users}
    assert len(answers) == len(response.users)
    return answers


def codes(answers):
    return {name: ErrorCode(answer.error_code) for name, answer in answers.items()}


@pytest.mark.parametrize("config", [CONFIG, GUARDED], ids=["open", "guarded"])
def test_a_credential_is_set_replaced_and_deleted(config):
    async def body(broker):
        rules = broker.services.access_store
        answer = (await alter(broker, ALICES, client=ROOT))["alice"]
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        kept = rules.credential("alice", SHA_256)
        assert kept == scram.credential("alice", SHA_256, SALT, 4096, password="secret")  # noqa: S106
        assert SALTED not in {kept.stored_key, kept.server_key}

        assert codes(await alter(broker, upsertion(iterations=8192), client=ROOT)) == {"alice": 0}
        assert rules.credential("alice", SHA_256).iterations == 8192

        assert codes(await alter(broker, NOTHING, client=ROOT)) == {"alice": 0}
        assert rules.credential("alice", SHA_256) is None

    serve(body, config=config)


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
def test_what_makes_no_sense_fails_alone(change, code, message):
    async def body(broker):
        answers = await alter(broker, change, upsertion(user="bob"))
        assert codes(answers) == {change.user: code, "bob": ErrorCode.NONE}
        assert message in answers[change.user].error_message
        assert [each.user for each in broker.services.access_store.credentials] == ["bob"]

    serve(body)


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
def test_a_user_is_altered_once_in_a_request(changes):
    async def body(broker):
        answers = await alter(broker, *changes, upsertion(user="bob"))
        assert codes(answers) == {"alice": ErrorCode.DUPLICATE_RESOURCE, "bob": ErrorCode.NONE}
        assert broker.services.access_store.credential("alice", SHA_256) is None

    serve(body)


def test_only_those_who_may_alter_the_cluster_may_alter_users():
    async def body(broker):
        changes = (NOTHING, ALICES, upsertion(user="bob"))
        await broker.services.access_store.add_acls([on_cluster(Operation.DESCRIBE)])
        assert codes(await alter(broker, *changes, client=ALICE)) == dict.fromkeys(
            ("alice", "bob"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
        assert not broker.services.access_store.credentials
        await broker.services.access_store.add_acls([on_cluster(Operation.ALTER)])
        assert codes(await alter(broker, ALICES, client=ALICE)) == {"alice": ErrorCode.NONE}

    serve(body, config=GUARDED)


def test_where_administration_is_not_for_clients_nothing_is_altered():
    async def body(broker):
        assert codes(await alter(broker, ALICES)) == {"alice": ErrorCode.POLICY_VIOLATION}
        assert not broker.services.access_store.credentials

    serve(body, config=WITHOUT_ADMINISTRATION)


def test_the_audit_log_says_who_altered_whom_and_nothing_secret():
    async def body(broker):
        with capture_logs() as events:
            await alter(broker, ALICES)
            await alter(broker, NOTHING)
        told = [event for event in events if event["event"] == "changed"]
        assert [event["change"] for event in told] == [
            "scram credential set",
            "scram credential deleted",
        ]
        assert {event["user"] for event in told} == {"alice"}
        assert {event["mechanism"] for event in told} == {"SCRAM-SHA-256"}
        assert SALT.decode() not in str(events)
        assert repr(SALTED)[2:-1] not in str(events)

    serve(body)
