"""ACLs, users and quotas over the API, on a broker with authorization."""

import pytest

from services.broker import BrokerProcess
from services.console import ConsoleProcess
from services.process import free_port

pytestmark = pytest.mark.timeout(120)

RULE = {
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
    "resourceType": "TOPIC",
    "resourceName": "shop-",
    "patternType": "PREFIXED",
}


@pytest.fixture(scope="module")
def console_client(tmp_path_factory):
    settings = {"authorization_enabled": "true", "authorization_super_users": "User:ANONYMOUS"}
    directory = tmp_path_factory.mktemp("access")
    with (
        BrokerProcess(directory, **settings) as broker,
        ConsoleProcess(directory, broker) as console,
    ):
        yield console.client()


def test_options_list_the_values_of_form_fields(console_client):
    options = console_client.get("/access/options")
    assert {"READ", "WRITE", "ALL", "PRODUCER"} <= set(options["operations"]["TOPIC"])
    assert "WRITE" not in options["operations"]["GROUP"]
    assert options["patternTypes"] == ["LITERAL", "PREFIXED"]
    assert options["mechanisms"] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert "producer_byte_rate" in options["quotaKeys"]


def test_acl_is_added_and_removed(console_client):
    assert console_client.post("/acls", RULE) == RULE
    listed = console_client.get("/acls")
    assert listed["isEnabled"]
    assert RULE in listed["items"]
    console_client.delete("/acls", RULE)
    assert RULE not in console_client.get("/acls")["items"]


def test_every_listed_operation_is_accepted(console_client):
    options = console_client.get("/access/options")
    for kind, operations in options["operations"].items():
        for operation in operations:
            rule = RULE | {"resourceType": kind, "operation": operation, "resourceName": "x"}
            created = console_client.post("/acls", rule)
            console_client.delete("/acls", created)
    assert console_client.get("/acls")["items"] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "FLY"},
        {"operation": "ANY"},
        {"resourceType": "GROUP", "operation": "WRITE"},
        {"principal": "alice"},
        {"patternType": "MATCH"},
        {"permission": "MAYBE"},
        {"resourceName": ""},
    ],
)
def test_invalid_acl_is_rejected(console_client, changes):
    response = console_client.request("POST", "/acls", RULE | changes)
    assert (response.status, response.json["error"]) == (400, "invalid-request")


def test_user_is_created_changed_and_deleted(console_client):
    created = console_client.post("/users", {"name": "a/lice", "password": "hunter2"})
    assert created == {"name": "a/lice", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}
    assert created in console_client.get("/users")["items"]
    again = console_client.request("POST", "/users", {"name": "a/lice", "password": "x"})
    assert (again.status, again.json["error"]) == (409, "conflict")
    assert console_client.put("/users/a%2Flice", {"password": "hunter3"}) == created
    console_client.delete("/users/a%2Flice")
    assert console_client.get("/users")["items"] == []
    assert console_client.request("DELETE", "/users/a%2Flice").status == 404
    assert console_client.request("PUT", "/users/a%2Flice", {"password": "x"}).status == 404


def test_user_with_one_mechanism(console_client):
    new_user = {"name": "bob", "password": "x", "mechanisms": ["SCRAM-SHA-512"]}
    assert console_client.post("/users", new_user)["mechanisms"] == ["SCRAM-SHA-512"]
    console_client.delete("/users/bob")
    assert (
        console_client.request("POST", "/users", new_user | {"mechanisms": ["PLAIN"]}).status == 400
    )
    assert console_client.request("POST", "/users", new_user | {"password": ""}).status == 400
    assert console_client.request("POST", "/users", new_user | {"name": ""}).status == 400


def test_quota_is_set_and_removed(console_client):
    entity = {"user": "alice", "client-id": None}
    listed = console_client.put(
        "/quotas", {"entity": entity, "values": {"producer_byte_rate": 1024, "request_rate": 2.5}}
    )
    assert {
        "entity": entity,
        "values": {"producer_byte_rate": 1024.0, "request_rate": 2.5},
    } in listed["items"]
    console_client.put(
        "/quotas", {"entity": entity, "values": {"producer_byte_rate": None, "request_rate": None}}
    )
    assert console_client.get("/quotas")["items"] == []


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {"request_rate": 1}),
        ({"group": "x"}, {"request_rate": 1}),
        ({"user": "x", "ip": "10.0.0.7"}, {"connection_creation_rate": 1}),
        ({"user": "x"}, {}),
        ({"user": "x"}, {"speed": 1}),
        ({"user": "x"}, {"request_rate": -1}),
        ({"ip": "10.0.0.7"}, {"request_rate": 1}),
    ],
)
def test_invalid_quota_is_rejected(console_client, entity, values):
    response = console_client.request("PUT", "/quotas", {"entity": entity, "values": values})
    assert (response.status, response.json["error"]) == (400, "invalid-request")


def test_large_request_is_rejected(console_client):
    response = console_client.request("POST", "/acls", RULE | {"resourceName": "x" * (1 << 20)})
    assert (response.status, response.json["error"]) == (413, "too-large")


def test_disabled_authorization_is_reported(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker) as console:
        console_client = console.client()
        listed = console_client.get("/acls")
        assert not listed["isEnabled"]
        assert listed["items"] == []
        assert "KAFSCALE_AUTHORIZATION_ENABLED" in listed["problem"]
        assert console_client.request("POST", "/acls", RULE).status == 409


def test_api_is_unavailable_without_broker(tmp_path):
    nowhere = f"127.0.0.1:{free_port()}"
    with ConsoleProcess(tmp_path, bootstrap_servers=nowhere, control_servers=nowhere) as console:
        response = console.client().request("GET", "/users")
        assert (response.status, response.json["error"]) == (503, "unavailable")
        assert nowhere in response.json["message"]
