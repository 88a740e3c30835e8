"""Java clients with every mechanism, and Kafka's tools for users and ACLs.

Starting a JVM takes a second or two, so one JVM does all logins.
"""

import re
import subprocess
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from kafscale.metadata.access.model import Operation, PatternType, Permission, ResourceType
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from services import java
from services.acls import Acls
from services.certificates import make_certificates
from services.client_operations import OK, ClientOperations
from services.client_program import HOME
from services.secured_broker import ADMIN, password_of
from services.secured_clients import LIBRDKAFKA
from services.secured_wire import SecuredWire

pytestmark = [
    pytest.mark.timeout(300),  # The first run downloads the tools.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

AUTHENTICATION = str(HOME / "java" / "Authentication.java")
ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture
def tool(secured, tmp_path):
    """Run a tool as `admin`, authenticated by a certificate."""
    config = secured.certificate(ADMIN)
    settings = str(config.java(tmp_path))

    def run(name: str, *arguments: str) -> str:
        server = ("--bootstrap-server", config.address, "--command-config", settings)
        return java.run(name, *server, *arguments)

    return run


def test_java_logins_succeed_or_fail_with_the_right_exception(secured, own_topic, tmp_path):
    untrusted = make_certificates(tmp_path / "untrusted", "alice", name="another CA")
    plain, certificate = secured.plain("alice"), secured.certificate("alice")
    tries = [
        (plain, "ok"),
        (secured.scram("alice", "SHA-256"), "ok"),
        (secured.scram("alice", "SHA-512"), "ok"),
        (secured.inside("alice"), "ok"),
        (secured.token("alice"), "ok"),
        (certificate, "ok"),
        (secured.certificate("bob"), "TopicAuthorizationException"),
        (plain.with_changes(password=password_of("mallory")), "SaslAuthenticationException"),
        (secured.scram("mallory"), "SaslAuthenticationException"),
        (secured.token("alice", lasts_s=-5), "SaslAuthenticationException"),
        (
            secured.inside("alice").with_changes(mechanism="PLAIN"),
            "UnsupportedSaslMechanismException",
        ),
        (
            certificate.with_changes(credential=untrusted.users["alice"]),
            "SslAuthenticationException",
        ),
        (certificate.with_changes(credential=None), "SslAuthenticationException"),
        (plain.with_changes(truststore=untrusted.truststore), "SslAuthenticationException"),
    ]
    paths = [str(config.java(tmp_path)) for config, _ in tries]
    results = java.run(AUTHENTICATION, own_topic, "alice-", *paths).splitlines()
    assert [line.partition(":")[0] for line in results] == [expected for _, expected in tries], (
        results
    )


@pytest.mark.long
def test_configs_tool_creates_and_deletes_a_user(secured, tool):
    user = f"user-{uuid4()}"
    entity = ("--alter", "--entity-type", "users", "--entity-name", user)
    tool(CONFIGS, *entity, "--add-config", f"SCRAM-SHA-512=[password={password_of(user)}]")
    assert ClientOperations(secured.scram(user)).describe_cluster() == OK
    tool(CONFIGS, *entity, "--delete-config", "SCRAM-SHA-512")
    message = "invalid credentials"
    assert message in LIBRDKAFKA.login_error(secured.scram(user), [message])


@pytest.mark.long
def test_acls_tool_adds_lists_and_removes(secured, tool):
    """Roles, which Kafka does not have, are listed and removed as well."""
    topic, user = f"orders-{uuid4()}", f"User:{uuid4()}"
    tool(ACLS, "--add", "--allow-principal", user, "--producer", "--topic", topic)
    config = secured.plain(ADMIN)
    with SecuredWire(config) as wire:
        assert wire.log_in_with(config) == 0
        role = AclToCreate(
            ResourceType.TOPIC,
            topic,
            PatternType.LITERAL,
            user,
            "*",
            Operation.CONSUMER,
            Permission.ALLOW,
        )
        assert wire.call(CREATE_ACLS, 3, CreateAclsRequest([role])).acls[0].error_code == 0

    listed = tool(ACLS, "--list", "--topic", topic)
    operations = re.findall(rf"principal={user}, host=\*, operation=(\w+)", listed)
    assert sorted(operations) == ["CREATE", "DESCRIBE", "UNKNOWN", "WRITE"]

    acls = Acls(AdminClient(config.librdkafka()))
    assert len(acls.describe(user)) == len(operations)
    tool(ACLS, "--remove", "--topic", topic, "--force")
    assert acls.describe(user) == []


def test_tool_learns_that_delegation_tokens_are_disabled(secured, tmp_path):
    config = secured.certificate(ADMIN)
    command = java.command(
        "org.apache.kafka.tools.DelegationTokenCommand",
        *("--bootstrap-server", config.address, "--command-config", str(config.java(tmp_path))),
        "--describe",
    )
    done = subprocess.run(  # noqa: S603 - the command is this test's own.
        command, capture_output=True, text=True, timeout=java.RUN_S_MAX, check=False
    )
    assert "DelegationTokenDisabledException" in done.stdout + done.stderr
