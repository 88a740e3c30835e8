"""The command line tools against brokers with TLS, authentication and authorization."""

import json
import pickle
import subprocess
import time

import pytest

from kafscale.client.security import Security
from kafscale.config import load
from services.broker import BrokerProcess
from services.certificates import make_certificates
from services.shell import COMMAND, Shell

ADMIN = {
    "client_sasl_mechanism": "PLAIN",
    "client_username": "admin",
    "client_password": "of-admin",
}
SESSION_MS = 1_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory, certificates):
    """A broker with SASL_SSL, authorization, and sessions of one second."""
    settings = {
        "broker_security_protocol": "SASL_SSL",
        "tls_cert_file": str(certificates.server_certificate),
        "tls_key_file": str(certificates.server_key),
        "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl_plain_users": "admin:of-admin",
        "sasl_connections_max_reauth_ms": str(SESSION_MS),
        "authorization_enabled": "true",
        "authorization_super_users": "User:admin",
        "group_initial_rebalance_delay_ms": "0",
    }
    with BrokerProcess(tmp_path_factory.mktemp("broker"), **settings) as running:
        yield running


@pytest.fixture
def tls(certificates):
    return {
        "client_security_protocol": "SASL_SSL",
        "client_tls_ca_file": str(certificates.authority),
    }


@pytest.fixture
def admin(broker, tls):
    return Shell(broker.address, **tls, **ADMIN)


@pytest.fixture
def create_user(admin):
    """Create users with a password from standard input."""

    def create(name, password):
        return subprocess.run(  # noqa: S603
            [COMMAND, "user", "create", name, "--password-file", "-"],
            input=password + "\n",
            env=admin.environment,
            capture_output=True,
            text=True,
            timeout=15,
            check=True,
        ).stdout

    return create


@pytest.fixture
def command_config(tmp_path, certificates):
    """Write a client configuration file of Kafka's tools for a user."""

    def write(name, password, mechanism="SCRAM-SHA-512"):
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        file = tmp_path / f"{name}.properties"
        file.write_text(
            "security.protocol=SASL_SSL\n"
            f"sasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={module} required \\\n"
            f'  username="{name}" password="{password}";\n'
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={certificates.authority}\n"
        )
        return str(file)

    return write


def test_user_may_do_only_what_acls_allow(broker, admin, create_user, command_config, topic):
    created = create_user("alice", "wonder")
    assert "created user alice for SCRAM-SHA-256 and SCRAM-SHA-512" in created
    assert "sasl.mechanism=SCRAM-SHA-512" in created
    listed = json.loads(admin("user", "list", "-o", "json"))
    assert {each["mechanism"] for each in listed[0]["credentials"]} == {
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    }

    admin("topic", "create", topic)
    alice = Shell(broker.address)
    login = ["--command-config", command_config("alice", "wonder")]
    assert topic not in alice("topic", "list", *login)
    assert "AUTHORIZATION_FAILED" in alice.produce(topic, *login, lines=["early"], code=1)

    grant = ["--allow-principal", "User:alice", "--topic", topic, "--group", "readers"]
    admin("acl", "add", *grant, "--producer", "--consumer")
    alice.produce(topic, *login, lines=["one", "two"])
    assert alice("consume", topic, "--no-follow", *login).split() == ["one", "two"]
    read = alice("consume", topic, "--no-follow", "--group", "readers", *login)
    assert read.split() == ["one", "two"]
    assert topic in alice("topic", "list", *login)
    assert "AUTHORIZATION_FAILED" in alice("topic", "delete", topic, "--yes", *login, code=1)
    assert "authorization.superUsers" in alice("acl", "list", *login, code=1)

    rules = json.loads(admin("acl", "list", "--topic", topic, "-o", "json"))
    assert {rule["operation"] for rule in rules} == {"READ", "WRITE", "CREATE", "DESCRIBE"}
    assert f"Topic {topic}" in admin("acl", "list", "--principal", "User:alice")

    admin("acl", "remove", "--allow-principal", "User:alice", "--yes")
    assert json.loads(admin("acl", "list", "--topic", topic, "-o", "json")) == []
    assert "AUTHORIZATION_FAILED" in alice("consume", topic, "--no-follow", *login, code=1)

    assert admin("user", "delete", "alice") == "deleted user alice\n"
    assert "rejected user alice" in alice("topic", "list", *login, code=1)


def test_consumer_role_allows_reading_only(broker, admin, create_user, command_config, topic):
    create_user("rita", "reads")
    login = ["--command-config", command_config("rita", "reads", "SCRAM-SHA-256")]
    admin.produce(topic, lines=["one"])
    admin("acl", "add", "--allow-principal", "User:rita", "--role", "consumer", "--topic", topic)
    rita = Shell(broker.address)
    assert rita("consume", topic, "--no-follow", *login) == "one\n"
    assert "AUTHORIZATION_FAILED" in rita.produce(topic, *login, lines=["two"], code=1)
    assert "role consumer" in admin("acl", "list", "--topic", topic)


def test_changed_password_replaces_the_old_one(broker, admin, create_user, command_config):
    create_user("bob", "first")
    subprocess.run(  # noqa: S603
        [COMMAND, "user", "password", "bob", "--password-file", "-"],
        input="second",
        env=admin.environment,
        text=True,
        timeout=15,
        check=True,
    )
    bob = Shell(broker.address)
    refused = bob("topic", "list", "--command-config", command_config("bob", "first"), code=1)
    assert "rejected user bob" in refused
    assert "first" not in refused
    bob("topic", "list", "--command-config", command_config("bob", "second"))


def test_long_running_commands_reauthenticate_and_lose_no_records(admin, topic):
    admin("topic", "create", topic)
    lines = [str(number) for number in range(14)]
    consume = ["consume", topic, "-n", str(len(lines)), "--group", "patient"]
    with admin.start(*consume) as reading, admin.start("produce", topic, "--quiet") as writing:
        for line in lines:
            writing.stdin.write(f"{line}\n")
            time.sleep(SESSION_MS / 1000 / 4)
        _, lost = writing.communicate(timeout=10)
        read, messages = reading.communicate(timeout=10)
    assert lost == ""
    assert read.split() == lines
    assert messages.count("generation") == 1  # It stayed a member all the time.


def test_client_certificate_authenticates_commands(start_broker, certificates, topic):
    broker = start_broker(
        broker_security_protocol="SSL",
        tls_cert_file=str(certificates.server_certificate),
        tls_key_file=str(certificates.server_key),
        tls_ca_file=str(certificates.authority),
        tls_client_auth="required",
        tls_principal_mapping_rules="RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        authorization_enabled="true",
        authorization_super_users="User:client",
    )
    trusting = {
        "client_security_protocol": "SSL",
        "client_tls_ca_file": str(certificates.authority),
    }
    client_certificate = {
        "client_tls_cert_file": str(certificates.client_certificate),
        "client_tls_key_file": str(certificates.client_key),
    }
    client = Shell(broker.address, **trusting, **client_certificate)
    client.produce(topic, lines=["one"])
    assert client("consume", topic, "--no-follow") == "one\n"
    refused = Shell(broker.address, **trusting)("topic", "list", code=1)
    assert "client.tls.certFile" in refused
    assert "client.securityProtocol" in Shell(broker.address)("topic", "list", code=1)


def test_spark_tasks_authenticate_with_the_same_settings(broker, admin, topic):
    """Only authentication is tested here: pickled tasks can log in where they run."""
    pytest.importorskip("pyarrow")
    from kafscale.spark.jobs.replay import job
    from kafscale.spark.jobs.restore import job as restore_job
    from kafscale.spark.jobs.restore.task import restore_partition
    from kafscale.spark.read.location import Location

    admin.produce(topic, lines=["one", "two"])
    settings = load(
        {name: text for name, text in admin.environment.items() if name.startswith("KAFSCALE_")}
    )
    common = {
        "location": Location.parse(str(broker.data)),
        "topic": topic,
        "bootstrap": broker.address,
        "security": Security.from_settings(settings.client),
    }
    restore_settings = restore_job.RestoreSettings(target=f"{topic}-restored", **common)
    items = pickle.loads(pickle.dumps(restore_job.prepare(restore_settings)))  # noqa: S301
    assert "of-admin" not in repr(items)
    for item in items:
        restore_partition(item)
    assert admin("consume", f"{topic}-restored", "--no-follow").split() == ["one", "two"]

    slices, tasks = job.prepare(job.ReplaySettings(target=f"{topic}-replayed", **common))
    assert sum(each.count for each in slices) == 2
    assert all(item.security == common["security"] for item in tasks.values())
